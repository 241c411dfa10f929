package election_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

// app is an application with this module on a link of its own.
func (w *world) app(name string, opts ...fx.Option) *fxtest.App {
	return fxtest.New(w.t, append([]fx.Option{
		framework.Module, election.Module,
		fx.Supply(framework.Config{Servers: w.Servers(), SessionTimeout: timeout, Identity: name}),
		framework.AsOption(framework.WithDialer(w.Link(name).DialContext)),
		framework.AsOption(framework.WithClock(framework.TimeClock())),
		framework.AsOption(framework.WithLogger(slog.New(slog.DiscardHandler))),
	}, opts...)...)
}

func TestModuleMakesElections(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var f *election.Factory
		app := w.app("a", framework.WaitForSession, fx.Populate(&f))
		app.RequireStart()
		term, err := f.Election(path, election.WithID("x")).Campaign(t.Context())
		require.NoError(t, err)
		require.Equal(t, "x", term.ID())
		_, err = f.Members(group).Join(t.Context(), "x", nil)
		require.NoError(t, err)
		app.RequireStop()
		require.ErrorIs(t, term.Err(), framework.ErrClosed)
		require.Empty(t, w.Children(path))
		require.Empty(t, w.Children(group))
	})
}

// duty is one that tells when it begins, and takes a second to end.
func duty(path string, began chan<- *election.Term, opts ...election.Option) fx.Option {
	return election.AsDuty(func() election.Duty {
		return election.Duty{Path: path, Options: opts, Lead: func(ctx context.Context, term *election.Term) error {
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
		a := w.app("a", duty(path, first), duty("/elections/other", other, election.WithID("o")))
		a.RequireStart()
		term := got(t, first)
		require.Equal(t, "a", term.ID())
		require.Equal(t, "o", got(t, other).ID())
		b := w.app("b", duty(path, second))
		b.RequireStart()
		time.Sleep(time.Minute)
		stopped := time.Now()
		a.RequireStop()
		next := got(t, second)
		require.Equal(t, time.Second, next.Since().Sub(stopped), "the duty's own time and one hand-over")
		require.Error(t, term.Err())
		b.RequireStop()
		require.Empty(t, w.Sessions())
	})
}

func TestModuleStartsAndStopsWithoutAServer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.Server.Close()
		var status *election.Status
		app := w.app("a", duty(path, nil), fx.Populate(&status))
		app.RequireStart()
		time.Sleep(time.Minute)
		code, v := probe(t, status, "/")
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Equal(t, "none", v["session"])
		app.RequireStop()
	})
}

func TestModuleShutsTheApplicationDownWhenADutyFailsForGood(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		calls := 0
		app := w.app("a", election.AsDuty(func() election.Duty {
			return election.Duty{Path: path, Lead: func(context.Context, *election.Term) error {
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

func TestModuleRefusesBadDuties(t *testing.T) {
	lead := func(context.Context, *election.Term) error { return nil }
	for says, duties := range map[string][]election.Duty{
		"the function is nil":               {{Path: path}},
		"invalid path":                      {{Path: "x", Lead: lead}},
		"duty " + path + ": two duties":     {{Path: path, Lead: lead}, {Path: path, Lead: lead}},
		"WithMinTerm: 0s":                   {{Path: path, Lead: lead, Options: []election.Option{election.WithMinTerm(0)}}},
		"duty /: invalid path \"/\": the r": {{Path: "/", Lead: lead}},
	} {
		opts := []fx.Option{fx.NopLogger, framework.Module, election.Module, fx.Supply(framework.Config{Servers: []string{"192.0.2.1"}})}
		for _, d := range duties {
			opts = append(opts, election.AsDuty(func() election.Duty { return d }))
		}
		require.ErrorContains(t, fx.New(opts...).Err(), says)
	}
}

func TestModuleRefusesConstructorsOfOtherTypes(t *testing.T) {
	made := election.Duty{}
	for says, constructor := range map[string]any{
		"got func() *election.Duty":              func() *election.Duty { return &made },
		"got func() string":                      func() string { return "" },
		"got election.Duty":                      made,
		"got <nil>":                              nil,
		"got func()":                             func() {},
		"got func() (election.Duty, bool)":       func() (election.Duty, bool) { return made, true },
		"got func() (election.Duty, int, error)": func() (election.Duty, int, error) { return made, 0, nil },
	} {
		app := fx.New(fx.NopLogger, framework.Module, election.Module, fx.Supply(framework.Config{Servers: []string{"192.0.2.1"}}), election.AsDuty(constructor))
		require.ErrorContains(t, app.Err(), "election.AsDuty: want a function that returns election.Duty or []election.Duty")
		require.ErrorContains(t, app.Err(), says)
	}
}

// TestModuleTakesSeveralDutiesOfOneConstructor also passes an annotation on.
func TestModuleTakesSeveralDutiesOfOneConstructor(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		began := make(chan *election.Term, 2)
		lead := func(ctx context.Context, term *election.Term) error {
			began <- term
			<-ctx.Done()
			return nil
		}
		app := w.app("a",
			fx.Supply(fx.Annotate("/elections/", fx.ResultTags(`name:"directory"`))),
			election.AsDuty(func(directory string) ([]election.Duty, error) {
				return []election.Duty{{Path: directory + "1", Lead: lead}, {Path: directory + "2", Lead: lead}}, nil
			}, fx.ParamTags(`name:"directory"`)))
		app.RequireStart()
		require.NotEqual(t, got(t, began).Node(), got(t, began).Node())
		app.RequireStop()
		require.Empty(t, w.Sessions())
	})
}

func TestModulesStatusNeedsNoDuty(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var status *election.Status
		app := w.app("a", framework.WaitForSession, fx.Populate(&status))
		app.RequireStart()
		code, v := probe(t, status, "/")
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, map[string]any{"session": "connected", "elections": []any{}}, v)
		app.RequireStop()
		code, v = probe(t, status, "/")
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Equal(t, "none", v["session"])
	})
}

func TestCampaignsAreTraced(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		spans := tracetest.NewSpanRecorder()
		m := w.Member(t, "a", config, framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
		e := election.New(m.Client, path)
		term, err := e.Campaign(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = e.Campaign(ctx)
		require.Error(t, err)

		var got []sdktrace.ReadOnlySpan
		for _, s := range spans.Ended() {
			if s.Name() == "lockstep.election.campaign" {
				got = append(got, s)
			}
		}
		require.Len(t, got, 2)
		require.Contains(t, got[0].Attributes(), attribute.String("lockstep.outcome", "elected"))
		require.Contains(t, got[0].Attributes(), attribute.Int64("lockstep.token", term.Token()))
		require.Contains(t, got[1].Attributes(), attribute.String("lockstep.outcome", "given up"))
		require.Equal(t, codes.Unset, got[1].Status().Code)
	})
}

func TestTermsAreMeasured(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		reader := sdkmetric.NewManualReader()
		m := w.Member(t, "a", config, framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		read := func() map[string]metricdata.Metrics {
			synctest.Wait()
			var all metricdata.ResourceMetrics
			require.NoError(t, reader.Collect(t.Context(), &all))
			out := map[string]metricdata.Metrics{}
			for _, s := range all.ScopeMetrics {
				for _, m := range s.Metrics {
					out[m.Name] = m
				}
			}
			return out
		}
		term, err := election.New(m.Client, path, election.WithMaxTerm(time.Minute)).Campaign(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, read()["lockstep.election.leading"].Data.(metricdata.Sum[int64]).DataPoints[0].Value)
		time.Sleep(2 * time.Minute)
		require.NoError(t, term.Resign(t.Context()))
		all := read()
		require.EqualValues(t, 0, all["lockstep.election.leading"].Data.(metricdata.Sum[int64]).DataPoints[0].Value)
		terms := all["lockstep.election.term.duration"].Data.(metricdata.Histogram[float64]).DataPoints
		require.Len(t, terms, 1)
		require.EqualValues(t, 60, terms[0].Sum)
		reason, _ := terms[0].Attributes.Value("lockstep.reason")
		require.Equal(t, "over", reason.AsString())
	})
}
