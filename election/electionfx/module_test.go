package electionfx_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/election/electionfx"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) {
	signals := make(chan os.Signal, 1) // fx listens for them: the runtime's part of that must be begun outside bubbles
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	goleak.VerifyTestMain(m)
}

const (
	timeout = 10 * time.Second
	path    = "/elections/a"
)

// world is a server in memory, in virtual time.
type world struct {
	*zktest.Server
	t *testing.T
}

func in(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &world{zktest.Start(t), t}) })
}

// got receives what must come within an hour of virtual time: without an end, a broken test would
// run for ever.
func got[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Hour):
		require.Fail(t, "it never came")
	}
	return v
}

// app is an application with this module on a link of its own.
func (w *world) app(name string, opts ...fx.Option) *fxtest.App {
	return fxtest.New(w.t, append([]fx.Option{
		frameworkfx.Module, electionfx.Module,
		fx.Supply(framework.Config{Servers: w.Servers(), SessionTimeout: timeout, Identity: name}),
		frameworkfx.AsOption(framework.WithDialer(w.Link(name).DialContext)),
		frameworkfx.AsOption(framework.WithTimeClock()),
		frameworkfx.AsOption(framework.WithLogger(slog.New(slog.DiscardHandler))),
	}, opts...)...)
}

// task is one that tells when it begins, and takes a second to end.
func task(path string, began chan<- *election.Term, opts ...election.Option) fx.Option {
	return electionfx.AsLeaderTask(func() electionfx.LeaderTask {
		return electionfx.LeaderTask{Path: path, Options: opts,
			Lead: func(ctx context.Context, term *election.Term) error {
				began <- term
				<-ctx.Done()
				time.Sleep(time.Second)
				return nil
			}}
	})
}

func TestModuleHandsOverWhenTheApplicationStops(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		first, second, other := make(chan *election.Term, 1), make(chan *election.Term, 1), make(chan *election.Term, 1)
		a := w.app("a", task(path, first), task("/elections/other", other, election.WithID("o")))
		a.RequireStart()
		term := got(t, first)
		require.Equal(t, "a", term.ID())
		require.Equal(t, "o", got(t, other).ID())
		b := w.app("b", task(path, second))
		b.RequireStart()
		time.Sleep(time.Minute)
		stopped := time.Now()
		a.RequireStop()
		next := got(t, second)
		require.Equal(t, time.Second, next.Since().Sub(stopped), "the task's own time and one hand-over")
		require.Error(t, term.Err())
		b.RequireStop()
		require.Empty(t, w.Sessions())
	})
}

func TestModuleStartsAndStopsWithoutAServer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.Server.Close()
		app := w.app("a", task(path, nil))
		app.RequireStart()
		time.Sleep(time.Minute)
		app.RequireStop()
	})
}

func TestModuleShutsTheApplicationDownWhenALeaderTaskFailsForGood(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		calls := 0
		app := w.app("a", electionfx.AsLeaderTask(func() electionfx.LeaderTask {
			return electionfx.LeaderTask{Path: path, Lead: func(context.Context, *election.Term) error {
				if calls++; calls < 3 {
					return errors.New("try again")
				}
				return election.Permanent(errors.New("hopeless"))
			}}
		}))
		app.RequireStart()
		require.Equal(t, 1, got(t, app.Wait()).ExitCode)
		require.Equal(t, 3, calls)
		app.RequireStop()
	})
}

func TestModuleRefusesBadLeaderTasks(t *testing.T) {
	lead := func(context.Context, *election.Term) error { return nil }
	for says, tasks := range map[string][]electionfx.LeaderTask{
		"the function is nil":                 {{Path: path}},
		"invalid path":                        {{Path: "x", Lead: lead}},
		"task " + path + ": two leader tasks": {{Path: path, Lead: lead}, {Path: path, Lead: lead}},
		"WithMinTerm: 0s": {
			{Path: path, Lead: lead, Options: []election.Option{election.WithMinTerm(0)}}},
		"task /: invalid path \"/\": the r": {{Path: "/", Lead: lead}},
	} {
		opts := []fx.Option{fx.NopLogger, frameworkfx.Module, electionfx.Module,
			fx.Supply(framework.Config{Servers: []string{"192.0.2.1"}})}
		for _, d := range tasks {
			opts = append(opts, electionfx.AsLeaderTask(d))
		}
		require.ErrorContains(t, fx.New(opts...).Err(), says)
	}
}

func TestModuleRefusesConstructorsOfOtherTypes(t *testing.T) {
	made := electionfx.LeaderTask{}
	for says, constructor := range map[string]any{
		"got func() *electionfx.LeaderTask":        func() *electionfx.LeaderTask { return &made },
		"got func() string":                        func() string { return "" },
		"got <nil>":                                nil,
		"got func()":                               func() {},
		"got func() (electionfx.LeaderTask, bool)": func() (electionfx.LeaderTask, bool) { return made, true },
		"got func() (electionfx.LeaderTask, int, error)": func() (electionfx.LeaderTask, int, error) {
			return made, 0,
				nil
		},
	} {
		app := fx.New(fx.NopLogger, frameworkfx.Module, electionfx.Module,
			fx.Supply(framework.Config{Servers: []string{"192.0.2.1"}}), electionfx.AsLeaderTask(constructor))
		require.ErrorContains(t, app.Err(),
			"electionfx.AsLeaderTask: want electionfx.LeaderTask or []electionfx.LeaderTask, or a function")
		require.ErrorContains(t, app.Err(), says)
	}
}

// TestModuleTakesSeveralLeaderTasksOfOneConstructor also passes an annotation on.
func TestModuleTakesSeveralLeaderTasksOfOneConstructor(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		began := make(chan *election.Term, 2)
		lead := func(ctx context.Context, term *election.Term) error {
			began <- term
			<-ctx.Done()
			return nil
		}
		app := w.app("a",
			fx.Supply(fx.Annotate("/elections/", fx.ResultTags(`name:"directory"`))),
			electionfx.AsLeaderTask(func(directory string) ([]electionfx.LeaderTask, error) {
				return []electionfx.LeaderTask{{Path: directory + "1", Lead: lead},
					{Path: directory + "2", Lead: lead}}, nil
			}, fx.ParamTags(`name:"directory"`)))
		app.RequireStart()
		require.NotEqual(t, got(t, began).Node(), got(t, began).Node())
		app.RequireStop()
		require.Empty(t, w.Sessions())
	})
}

// TestAnnotationsNeedAConstructor: a value cannot have any.
func TestAnnotationsNeedAConstructor(t *testing.T) {
	app := fx.New(fx.NopLogger, frameworkfx.Module, electionfx.Module,
		electionfx.AsLeaderTask(electionfx.LeaderTask{}, fx.ParamTags(`name:"a"`)))
	require.ErrorContains(t, app.Err(), "electionfx.AsLeaderTask: annotations are for a constructor")
}
