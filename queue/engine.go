package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// engine is the untyped part of a Queue: the stored queue, one writer, one consumer, and their
// lifetime.
type engine struct {
	err      error // of the arguments
	settings settings
	store    *store
	tel      telemetry
	writer   *writer
	putLine  *putLine
	consumer *consumer

	openCtx   context.Context // done when Close begins: no more items are taken
	endOpen   context.CancelCauseFunc
	writeCtx  context.Context // done when Close ends: no more requests are written
	endWrites context.CancelCauseFunc
	tasks     background.Tasks

	ending sync.Once
	closed chan struct{}
}

func newEngine(client *framework.Client, path string, opts []Option) *engine {
	e := &engine{closed: make(chan struct{})}
	e.openCtx, e.endOpen = context.WithCancelCause(context.Background())
	e.writeCtx, e.endWrites = context.WithCancelCause(context.Background())
	e.settings, e.err = recipe.ApplyOptions(defaultSettings(), opts)
	if err := checkArguments(client, path); err != nil {
		e.err = err
	}
	e.store = &store{client: client, nodes: queuelayout.New(path), given: e.settings.record, checkUsable: e.checkUsable}
	e.putLine = &putLine{store: e.store, openCtx: e.openCtx, tasks: &e.tasks}
	e.writer = newWriter(writerConfig{
		store: e.store, segmentSize: e.settings.segmentSize, openCtx: e.openCtx, writeCtx: e.writeCtx, tasks: &e.tasks,
		putsWait: e.putLine.hasPuts,
	})
	e.putLine.writer = e.writer
	e.consumer = newConsumer(e.store, &e.settings, e.writer, e.openCtx, &e.tasks)
	if e.err == nil {
		e.tel = newTelemetry(client, path)
	}
	return e
}

func checkArguments(client *framework.Client, path string) error {
	if client == nil {
		return fmt.Errorf("%w: the client is nil", ErrOption)
	}
	return recipe.CheckClientAndPath(client, path, "a queue")
}

// queuePath is the queue's path.
func (e *engine) queuePath() string { return e.store.nodes.Path }

// checkUsable returns the error of wrong arguments, or ErrClosed after Close.
func (e *engine) checkUsable() error {
	if e.err != nil {
		return e.err
	}
	return context.Cause(e.openCtx)
}

// put writes a put and waits, also for room unless the Queue fails when the queue is full.
func (e *engine) put(ctx context.Context, r *writeRequest) error {
	_, err := e.writer.writeAndWait(ctx, r)
	if !errors.Is(err, ErrFull) || e.settings.failWhenFull || e.store.exceedsCapacity(r) {
		return err
	}
	return e.putLine.putInTurn(ctx, r)
}

// close ends the consumer, then the writer.
func (e *engine) close(ctx context.Context) error {
	e.endOpen(ErrClosed)
	e.ending.Do(func() {
		go func() {
			defer close(e.closed)
			<-e.tasks.Done()
			e.endWrites(ErrClosed)
			e.writer.removeOwnNodes()
		}()
	})
	return failure.Wrap("close", e.queuePath(), recipe.FinishCleanup(ctx, e.store.client, e.closed, nil))
}
