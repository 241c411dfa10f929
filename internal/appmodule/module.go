// Package appmodule has the code that the fx modules of several packages share.
package appmodule

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"go.uber.org/fx"
)

// Collect adds what a constructor returns to a value group of T. The constructor must return a T or
// a []T, and may also return an error. Otherwise the application fails to build, with an error that
// names the caller, such as "schedulerfx.AsJob". Without this check fx would drop the value
// silently.
func Collect[T any](caller, group string, constructor any, annotations []fx.Annotation) fx.Option {
	one := reflect.TypeFor[T]()
	tag := fmt.Sprintf("group:%q", group)
	f := reflect.TypeOf(constructor)
	switch {
	case f == nil || f.Kind() != reflect.Func || f.NumOut() == 0 || f.NumOut() > 2 ||
		f.NumOut() == 2 && f.Out(1) != reflect.TypeFor[error](),
		f.Out(0) != one && f.Out(0) != reflect.SliceOf(one):
		return fx.Error(fmt.Errorf("%s: want a function that returns %v or []%v, and an error if it may fail; got %T",
			caller, one, one, constructor))
	case f.Out(0) != one:
		tag = fmt.Sprintf("group:%q", group+",flatten")
	}
	return fx.Provide(fx.Annotate(constructor,
		append(annotations[:len(annotations):len(annotations)], fx.ResultTags(tag))...))
}

// Shutdown logs err and shuts the application down with exit code 1. message says which component
// at path has failed.
func Shutdown(stop fx.Shutdowner, log *slog.Logger, message, path string, err error) {
	log.Error(message, "path", path, "error", err)
	if err := stop.Shutdown(fx.ExitCode(1)); err != nil {
		log.Error("the application cannot be shut down", "error", err)
	}
}

// Run runs f from the application's start to its stop. The stop ends the context of f, and waits
// until f has returned, for the part of the time that PartOfStop allows.
func Run(lc fx.Lifecycle, name string, f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error {
			go func() { defer close(done); f(ctx) }()
			return nil
		},
		OnStop: func(stopping context.Context) error {
			cancel()
			began := time.Now()
			part, end := PartOfStop(stopping)
			defer end()
			select {
			case <-done:
				return nil
			case <-part.Done():
				return fmt.Errorf("%s: stop: it has not ended within %v, and the rest of the application is stopped "+
					"now; choose a longer fx.StopTimeout or a shorter grace: %w",
					name, time.Since(began).Round(time.Millisecond), context.Cause(part))
			}
		},
	})
}

// PartOfStop returns a context that ends after three quarters of the time that is left for the
// application's stop. A hook that waits for the application's own code ends with it. fx skips the
// remaining hooks once the stop timeout is over, and the last of them close queues and the client:
// without them, others wait for the end of the session.
func PartOfStop(stopping context.Context) (context.Context, context.CancelFunc) {
	deadline, limited := stopping.Deadline()
	if !limited {
		return context.WithCancel(stopping)
	}
	return context.WithTimeout(stopping, time.Until(deadline)*3/4)
}
