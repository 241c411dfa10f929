// Package appmodule has the code that the fx modules of several packages share.
package appmodule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/internal/drain"
)

// Collect adds a T, a []T, or what a constructor returns to a value group of T. The constructor
// must return a T or a []T, and may also return an error. Otherwise the application fails to build,
// with an error that names the caller, such as "schedulerfx.AsJob". Without this check fx would
// drop the value silently.
func Collect[T any](caller, group string, valueOrConstructor any, annotations []fx.Annotation) fx.Option {
	one, many := reflect.TypeFor[T](), reflect.TypeFor[[]T]()
	given := reflect.TypeOf(valueOrConstructor)
	isConstructor := given != nil && given != one && given.Kind() == reflect.Func &&
		(given.NumOut() == 1 || given.NumOut() == 2 && given.Out(1) == reflect.TypeFor[error]())
	made := given
	if isConstructor {
		made = given.Out(0)
	}
	tag := fmt.Sprintf("group:%q", group)
	if made == many {
		tag = fmt.Sprintf("group:%q", group+",flatten")
	}
	switch {
	case made != one && made != many:
		return fx.Error(fmt.Errorf("%s: want %v or []%v, or a function that returns one, and an error if it may fail; got %T",
			caller, one, one, valueOrConstructor))
	case isConstructor:
		return fx.Provide(fx.Annotate(valueOrConstructor,
			append(annotations[:len(annotations):len(annotations)], fx.ResultTags(tag))...))
	case len(annotations) > 0:
		return fx.Error(fmt.Errorf("%s: annotations are for a constructor; got %T", caller, valueOrConstructor))
	}
	return fx.Supply(fx.Annotate(valueOrConstructor, fx.ResultTags(tag)))
}

// Grace is how long functions may go on when the application stops, as frameworkfx.Grace has set
// it.
type Grace time.Duration

// App is what modules need of an application to run something from its start to its stop.
type App struct {
	fx.In

	Lifecycle  fx.Lifecycle
	Shutdowner fx.Shutdowner
	Sequence   *drain.Sequence `optional:"true"` // of frameworkfx.Module
	Grace      Grace           `optional:"true"`
}

// CheckGrace returns an error if functions may go on for longer than the application's stop lasts.
// fx tells no module its stop timeout: without frameworkfx.Grace it counts as fx.DefaultTimeout.
func (a App) CheckGrace(option string, grace time.Duration) error {
	allowed := time.Duration(a.Grace)
	if allowed == 0 {
		allowed = drain.FunctionTime(fx.DefaultTimeout)
	}
	if grace <= allowed {
		return nil
	}
	return fmt.Errorf("%s: functions may take %v to end, and the application's stop allows %v: give fx.New "+
		"frameworkfx.Grace(%v) in place of fx.StopTimeout, or choose a shorter time", option, grace, allowed, grace)
}

// Append adds hooks to the application. The stop of the hook of one stage first stops what belongs
// to earlier stages, whatever the order of the modules.
func (a App) Append(stage drain.Stage, start, stop func(context.Context) error) {
	sequence := a.Sequence
	if sequence == nil {
		sequence = &drain.Sequence{}
	}
	sequence.Add(stage, stop)
	a.Lifecycle.Append(fx.Hook{
		OnStart: start,
		OnStop:  func(stopping context.Context) error { return sequence.StopThrough(stopping, stage) },
	})
}

// Run runs f from the application's start to its stop. The stop ends the context of f, and waits
// until f has returned, for a part of the time that the stop has left. An error of f shuts the
// application down with exit code 1. f is named by what it is and by its path.
func (a App) Run(stage drain.Stage, what, path string, log *slog.Logger, f func(context.Context) error) {
	var failed error
	task := drain.NewTask(context.Background(), what+" "+path, func(ctx context.Context) {
		err := f(ctx)
		switch {
		case err == nil:
		case ctx.Err() == nil:
			log.Error("the application is shut down: a part of it has failed", "part", what, "path", path, "error", err)
			if err := a.Shutdowner.Shutdown(fx.ExitCode(1)); err != nil {
				log.Error("the application cannot be shut down", "error", err)
			}
		case !errors.Is(err, ctx.Err()) && !errors.Is(err, context.Cause(ctx)):
			failed = err
		}
	})
	a.Append(stage, func(context.Context) error { task.Start(); return nil }, func(stopping context.Context) error {
		if err := task.Stop(stopping); err != nil {
			return fmt.Errorf("%w, and the rest of the application is stopped now; give it more time by "+
				"frameworkfx.Grace", err)
		}
		return failed
	})
}
