package election

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// leaderPlace is the first place in line. Its owner leads until it releases the place.
type leaderPlace struct {
	contender *waitline.Contender
	hold      primitives.Hold
	key       any // finds the place in the contexts of its term

	mu       sync.Mutex
	deletion primitives.Discarded // once it is released
}

// newPlace returns the place of a contender that is granted. values is the caller's context. It
// fails when the session has ended, and the contender leaves then.
func newPlace(values context.Context, c *waitline.Contender, key any) (*leaderPlace, error) {
	p := &leaderPlace{contender: c, key: key}
	var err error
	p.hold, err = c.Session().Primitives().Hold(placeContext{values, p}, c.Node())
	if err != nil {
		c.Leave(nil)
		return nil, err
	}
	// the next local waiter need not wait for the release
	context.AfterFunc(p.hold.Context(), func() { p.endHold(nil) })
	return p, nil
}

// placeContext has the values of the caller's context, and knows the place by its key.
type placeContext struct {
	context.Context
	place *leaderPlace
}

func (c placeContext) Value(key any) any {
	if key == c.place.key {
		return c.place
	}
	return c.Context.Value(key)
}

// Err is nil while the place is held. It reads the clock.
func (p *leaderPlace) Err() error { return p.hold.Err() }

func (p *leaderPlace) nodePath() string { return p.contender.Node().Path }

func (p *leaderPlace) token() int64 { return p.contender.Node().Zxid }

func (p *leaderPlace) session() *framework.Session { return p.contender.Session() }

// timeLeft is the time until the place is lost, unless a later proof of life extends the time.
func (p *leaderPlace) timeLeft() time.Duration {
	if p.Err() != nil {
		return 0
	}
	return p.session().LeaseRemaining()
}

// endHold ends the hold and then deletes the node in the background; only the first call counts. A
// nil cause is for a hold that has ended.
func (p *leaderPlace) endHold(cause error) primitives.Discarded {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deletion == nil {
		p.hold.End(cause)
		if errors.Is(p.Err(), framework.ErrNodeGone) {
			p.contender.Unlink()
		}
		p.deletion = p.contender.LeaveGuarded(nil)
	}
	return p.deletion
}

// releaseNode gives the place up, and waits until the servers have confirmed that its node is gone,
// or ctx ends.
func (p *leaderPlace) releaseNode(ctx context.Context) error {
	deletion := p.endHold(ErrResigned)
	err := deletion.Wait(ctx)
	if err == nil {
		p.contender.RecordRelease(deletion.Zxid())
	}
	return err
}
