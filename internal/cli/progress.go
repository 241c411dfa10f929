package cli

import (
	"time"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// ProgressCounter prints progress to a terminal.
type ProgressCounter struct {
	streams *Streams
	what    string
	n       int
	shown   time.Time
	live    bool
}

func NewProgress(streams *Streams, what string) *ProgressCounter {
	return &ProgressCounter{streams: streams, what: what, shown: time.Now(), live: terminal.Is(streams.Err)}
}

func (p *ProgressCounter) AddCount(n int) {
	p.n += n
	if p.live && time.Since(p.shown) > 2*time.Second {
		p.shown = time.Now()
		p.streams.PrintNotice("%d %s so far", p.n, p.what)
	}
}

// PrintTotal prints the total, also in a script if the work has failed after a part of it: the
// caller may have to continue after that part.
func (p *ProgressCounter) PrintTotal(failed bool) {
	if p.live || failed && p.n > 0 {
		p.streams.PrintNotice("%d %s", p.n, p.what)
	}
}
