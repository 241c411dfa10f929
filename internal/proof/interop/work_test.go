package interop

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// work is a contender's critical section.
type work struct {
	section Section
	nodes   []string
	permits int
	rounds  int
}

func (p peerContender) work(ctx context.Context, w work) error {
	c := p.lockIn
	c.Do, c.Section, c.Nodes, c.Permits, c.Rounds = "work", w.section, w.nodes, w.permits, w.rounds
	_, err := p.peer.Do(ctx, c)
	return err
}

func (o *lockstepContender) work(ctx context.Context, w work) error {
	for range w.rounds {
		lease, err := o.locker.Lock(ctx)
		if err != nil {
			return err
		}
		err = w.enter(ctx, o.client)
		if err := errors.Join(err, lease.Release(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func (w work) enter(ctx context.Context, c *framework.Client) error {
	switch w.section {
	case Add:
		return w.add(ctx, c)
	case Compare:
		return w.compare(ctx, c)
	case Crowd:
		return w.crowd(ctx, c)
	}
	return fmt.Errorf("no such section: %s", w.section)
}

func (w work) add(ctx context.Context, c *framework.Client) error {
	for _, path := range w.nodes {
		n, err := number(ctx, c, path)
		if err != nil {
			return err
		}
		if _, err := c.Set(ctx, path, []byte(strconv.Itoa(n+1)), framework.AnyVersion); err != nil {
			return err
		}
	}
	return nil
}

func (w work) compare(ctx context.Context, c *framework.Client) error {
	first, err := number(ctx, c, w.nodes[0])
	if err != nil {
		return err
	}
	last, err := number(ctx, c, w.nodes[len(w.nodes)-1])
	if err == nil && first != last {
		err = fmt.Errorf("a writer wrote while a reader was inside: %d, then %d", first, last)
	}
	return err
}

func (w work) crowd(ctx context.Context, c *framework.Client) error {
	dir := w.nodes[0]
	me := znode.Join(dir, "in-"+uuid.NewString())
	if err := c.Create(ctx, me, nil, framework.Ephemeral); err != nil {
		return err
	}
	in, _, err := c.Children(ctx, dir)
	if err == nil && len(in) > w.permits {
		err = fmt.Errorf("%d are in", len(in))
	}
	return errors.Join(err, c.Delete(ctx, me, framework.AnyVersion))
}

func number(ctx context.Context, c *framework.Client, path string) (int, error) {
	data, _, err := c.Get(ctx, path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(data))
}
