//go:build linux

package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// event is a line of a process's history.
type event struct {
	At   int64  `json:"t"`            // ns, see now
	Op   int64  `json:"op,omitempty"` // the process's number of the operation
	Step step   `json:"step"`
	Kind kind   `json:"kind,omitempty"` // of what is asked for
	Path string `json:"path,omitempty"`

	Token   int64  `json:"token,omitempty"`   // of a grant
	Number  int64  `json:"number,omitempty"`  // of a term, or of an item in its producer's stream
	Permits int    `json:"permits,omitempty"` // asked for
	Item    string `json:"item,omitempty"`    // the stream of an item
	Attempt int    `json:"attempt,omitempty"` // of a delivery
	Delay   int64  `json:"delay,omitempty"`   // ns, of an item that is put

	Stood int64  `json:"stood,omitempty"` // of an end: when the hold was seen to stand last
	How   how    `json:"how,omitempty"`   // of an end
	Why   string `json:"why,omitempty"`   // of a failure
}

// step is what happened to an operation.
type step string

const (
	asked   step = "asked"   // about to ask
	granted step = "granted" // has what it asked for: a hold, a delivery, or a put that is done
	missed  step = "missed"  // gave up asking, and has nothing
	unknown step = "unknown" // does not know whether its put was done
	failed  step = "failed"  // an error that nothing excuses
	stands  step = "stands"  // still holds
	leaving step = "leaving" // about to acknowledge
	ended   step = "ended"   // holds no more
	resting step = "resting" // nobody in this process is doing anything; How is what it was told
	ready   step = "ready"   // connected
)

// kind is what is asked for.
type kind string

const (
	exclusive kind = "lock"
	shared    kind = "read"
	permits   kind = "permits"
	leading   kind = "term"
	putting   kind = "put"
	taking    kind = "delivery"
)

// how a hold ended.
type how string

const (
	released how = "released"
	lost     how = "lost"     // its context was done
	acked    how = "acked"    // and the item is gone
	inDoubt  how = "in doubt" // acknowledged, with an error: the item may be gone
	returned how = "nacked"   // given back
	died     how = "died"     // with its process
)

// journal writes events, each at once and whole: what a process has written outlives it.
type journal struct {
	mu   sync.Mutex
	to   io.Writer
	last atomic.Int64 // operation
}

func (j *journal) write(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // plain fields
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.to.Write(append(line, '\n')); err != nil {
		panic(err) // the history would have a hole
	}
}

// readEvent is the other end of write.
func readEvent(line []byte) (e event, err error) {
	if err = json.Unmarshal(line, &e); err != nil {
		return e, fmt.Errorf("no event %q: %w", line, err)
	}
	if e.Step == "" || e.At <= 0 {
		return e, fmt.Errorf("no event %q", line)
	}
	return e, nil
}

func FuzzReadEvent(f *testing.F) {
	f.Add([]byte(`{"t":17,"op":3,"step":"asked","kind":"lock","path":"/mutex-0"}`))
	f.Add([]byte(`{"t":0,"step":"asked"}`))
	f.Add([]byte(`nonsense`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := readEvent(line)
		if err != nil {
			return
		}
		again, err := json.Marshal(e)
		require.NoError(t, err)
		same, err := readEvent(again)
		require.NoError(t, err)
		require.Equal(t, e, same)
	})
}
