package main

import (
	"time"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// progressCounter prints progress to a terminal.
type progressCounter struct {
	streams *Streams
	what    string
	n       int
	shown   time.Time
	live    bool
}

func newProgress(streams *Streams, what string) *progressCounter {
	return &progressCounter{streams: streams, what: what, shown: time.Now(), live: terminal.Is(streams.Err)}
}

func (p *progressCounter) addCount(n int) {
	p.n += n
	if p.live && time.Since(p.shown) > 2*time.Second {
		p.shown = time.Now()
		p.streams.printNotice("%d %s so far", p.n, p.what)
	}
}

// printTotal prints the total, also in a script if the work has failed after a part of it: the
// caller may have to continue after that part.
func (p *progressCounter) printTotal(failed bool) {
	if p.live || failed && p.n > 0 {
		p.streams.printNotice("%d %s", p.n, p.what)
	}
}
