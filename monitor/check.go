package monitor

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
)

// Report is what one look has found.
type Report struct {
	// Findings are what is wrong, by problem and path.
	Findings []Finding
	// Locks, Jobs and Queues are how many the look has seen.
	Locks, Jobs, Queues int
}

// Check looks once at the locks, jobs and queues at and below root. It writes nothing, and finds what one look can tell: no holds that are too long, and no growth. What cannot
// be read is a finding. Ages are by this machine's clock. The error is one after which Check could not go on; it wraps ErrOption if an option's value cannot be used.
func Check(ctx context.Context, client *framework.Client, root string, opts ...Option) (Report, error) {
	settings, err := newSettings(opts)
	if err == nil {
		err = checkRoot(client, root)
	}
	if err != nil {
		return Report{}, failure.Wrap("check", root, err)
	}
	l, err := newLooker(client, root, settings).look(ctx, time.Now())
	if err != nil {
		return Report{}, failure.Wrap("check", root, err)
	}
	return Report{l.sorted(), l.locks, l.jobs, l.queues}, nil
}

func checkRoot(client *framework.Client, root string) error {
	switch {
	case client == nil:
		return errors.New("the client is nil")
	case root == "/":
		return nil
	}
	return framework.ValidatePath(root)
}

// looker looks at everything below a root, and keeps what later looks compare with.
type looker struct {
	settings settings
	locks    lockWatch
	jobs     jobWatch
	queues   queueWatch
}

func newLooker(client *framework.Client, root string, s settings) *looker {
	return &looker{
		settings: s,
		locks:    lockWatch{client: client, root: root, settings: s, holders: map[string]time.Time{}},
		jobs:     jobWatch{client: client, root: root, failedRuns: s.failedRuns},
		queues:   queueWatch{client: client, root: root, settings: s, growth: map[string]growth{}},
	}
}

// look looks once.
func (k *looker) look(ctx context.Context, at time.Time) (*look, error) {
	l := newLook(at, k.settings.without)
	queues, err := k.queues.look(ctx, l)
	if err == nil {
		err = k.jobs.look(ctx, l)
	}
	if err == nil {
		err = k.locks.look(ctx, l, queues)
	}
	return l, err
}
