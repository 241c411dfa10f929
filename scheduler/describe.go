package scheduler

import (
	"bytes"
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
)

// enlist creates the member node.
func (sh *shift) enlist(ctx context.Context) (framework.Created, error) {
	data, err := sh.describe()
	if err != nil {
		return framework.Created{}, err
	}
	nodes, err := sh.session.CreateTogether(ctx, framework.Together{
		Dir: sh.members(), Name: sh.name, Plain: true, Data: data, Count: 1, Mode: framework.Ephemeral,
	})
	if err != nil {
		return framework.Created{}, err
	}
	sh.described = data
	sh.hold, err = sh.session.Hold(context.Background(), nodes[0].Path)
	return nodes[0], err
}

// describe is what this member stores of itself.
func (sh *shift) describe() ([]byte, error) {
	sh.Scheduler.mu.Lock()
	defer sh.Scheduler.mu.Unlock()
	return member{id: sh.client.Config().Identity, labels: sh.labels, keys: keysOf(sh.jobs)}.encode()
}

// describeAgain stores this member's description anew, and has the others read it. Without a shift there
// is none: the next one looks whether it has stored the right one.
func (s *Scheduler) describeAgain(ctx context.Context) error {
	if sh := s.present(); sh != nil {
		return sh.describeAgain(ctx)
	}
	return nil
}

// keepDescribed describes this member anew if anything has changed. If that fails, the next shift's is right.
func (sh *shift) keepDescribed() {
	_ = sh.settling(sh.ctx, func(*framework.Session) error { return sh.describeAgain(sh.ctx) })
}

// describeAgain is done by one at a time, since what is stored is repeated when its reply is lost: it must be the
// latest.
func (sh *shift) describeAgain(ctx context.Context) error {
	select {
	case sh.telling <- struct{}{}:
		defer func() { <-sh.telling }()
	case <-ctx.Done():
		return framework.Ended(ctx)
	}
	data, err := sh.describe()
	if err != nil || bytes.Equal(data, sh.described) {
		return err
	}
	sh.described = nil
	_, err = sh.session.Set(ctx, framework.Join(sh.members(), sh.name), data, framework.AnyVersion)
	if errors.Is(err, framework.ErrSessionLost) || errors.Is(err, framework.ErrNoNode) {
		return nil // so is the shift
	}
	if err == nil {
		err = sh.publish(ctx, "")
	}
	if err == nil {
		sh.described = data
	}
	return err
}
