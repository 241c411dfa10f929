package main

import (
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	notrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// telemetryKinds are the providers of O, which take turns. With "noop" the clients get providers
// that measure nothing, with "none" they get no provider, and with "reader" they measure, and a
// reader in memory collects.
var telemetryKinds = []string{"noop", "none", "reader"}

// telemetryRounds is how many turns each kind has. So a change of the servers' or the machine's
// speed concerns all kinds.
const telemetryRounds = 20

// telemetryOverhead is O: what telemetry costs W1 and W2.
func telemetryOverhead(s settings) error {
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	options := map[string][]framework.Option{
		"noop": {framework.WithTracerProvider(notrace.NewTracerProvider()),
			framework.WithMeterProvider(noop.NewMeterProvider())},
		"reader": {framework.WithMeterProvider(provider)},
	}
	for _, w := range []struct {
		name string
		c    int
	}{{"W1", 1}, {"W2", orDefault(s.c, 32)}} {
		lockers := map[string][]locks.Locker{}
		for _, kind := range telemetryKinds {
			for range w.c {
				c, err := open(s, options[kind]...)
				if err != nil {
					return err
				}
				defer closeAll(c)
				lockers[kind] = append(lockers[kind], locks.NewMutex(c, root+"/o-"+w.name+"-"+kind, s.options()...))
			}
		}
		cycles, took := map[string]int{}, map[string]time.Duration{}
		turn := s
		turn.span, turn.warmup = s.span/telemetryRounds, s.warmup/telemetryRounds
		for round := range telemetryRounds {
			for i := range telemetryKinds {
				kind := telemetryKinds[(i+round)%len(telemetryKinds)]
				var g criticalSection
				t, err := contend(turn, &g, lockers[kind])
				if err != nil {
					return err
				}
				cycles[kind] += sum(t.counts)
				took[kind] += t.took
			}
		}
		pace := func(kind string) float64 { return float64(cycles[kind]) / took[kind].Seconds() }
		for _, kind := range telemetryKinds {
			r := newResult(s, "lockstep",
				s.params(map[string]any{"of": w.name, "c": w.c, "telemetry": kind, "ratio": pace(kind) / pace("noop")}),
				cycles[kind], took[kind], nil)
			if err := r.print(); err != nil {
				return err
			}
		}
	}
	return nil
}
