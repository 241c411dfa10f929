package waitline

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/metrics"
)

// scope is the package that users see in their telemetry.
const scope = "github.com/lockstep-go/lockstep/locks"

// Telemetry traces and measures the waits for one lock or election, and the holds of a lock.
type Telemetry struct {
	path, kind  string
	tracer      trace.Tracer
	propagators propagation.TextMapPropagator
	waits       metric.Float64Histogram
	holds       metric.Float64Histogram
	waiting     metric.Int64UpDownCounter
	held        metric.Int64UpDownCounter
	deadlocks   metric.Int64Counter
}

// NewTelemetry returns the telemetry of what is at path. kind is the lock's kind in words.
func NewTelemetry(c *framework.Client, path, kind string) *Telemetry {
	p := c.MeterProvider()
	return &Telemetry{path: path, kind: kind, tracer: c.TracerProvider().Tracer(scope), propagators: c.Propagators(),
		waits: metrics.LockWait.Histogram(p), holds: metrics.LockHold.Histogram(p),
		waiting: metrics.LockWaiting.UpDown(p), held: metrics.LockHeld.UpDown(p),
		deadlocks: metrics.LockDeadlocks.Counter(p)}
}

// The attributes of metrics, made once.
var (
	lockKinds = []string{"mutex", "read", "write", "semaphore", "claim", "election"}
	outcomes  = []string{"granted", "not acquired", "deadlock", "given up", "error"}
	byKind    = metrics.Values(metrics.LockKind, lockKinds...)
	byEnd     = kindsWith(metrics.Outcome, outcomes...)
	byReason  = kindsWith(metrics.Reason, "released", "max hold", "session lost", "node deleted", "closed", "other")
)

// kindsWith are the attributes of each kind with each value of another attribute.
func kindsWith(key string, values ...string) map[[2]string]metric.MeasurementOption {
	sets := map[[2]string]metric.MeasurementOption{}
	for _, kind := range lockKinds {
		for _, v := range values {
			sets[[2]string{kind, v}] = metrics.With(attribute.String(metrics.LockKind, kind), attribute.String(key, v))
		}
	}
	return sets
}

// RecordDeadlock tells of a deadlock that the ask of ctx is the youngest of. broken says that the ask fails.
func (t *Telemetry) RecordDeadlock(ctx context.Context, text string, broken bool) {
	trace.SpanFromContext(ctx).AddEvent("lockstep.lock.deadlock", trace.WithAttributes(
		attribute.String("lockstep.deadlock", text), attribute.Bool("lockstep.deadlock.broken", broken)))
	t.deadlocks.Add(ctx, 1, metrics.With(attribute.String(metrics.LockKind, t.kind), attribute.Bool(metrics.Broken, broken)))
}

// StartWait starts a span that lasts until end is called: the lock was granted with a token, or err says why not. A refusal is an outcome,
// not an error. The returned context belongs to the span; CallerContext returns the original ctx.
func (t *Telemetry) StartWait(ctx context.Context, op string) (_ context.Context, end func(token int64, err error)) {
	began := time.Now()
	within, span := t.tracer.Start(context.WithValue(ctx, waitKey{}, &waitContext{ctx, t}), "lockstep.lock."+op,
		trace.WithAttributes(attribute.String("lockstep.path", t.path), attribute.String("lockstep.lock.kind", t.kind)))
	counted := t.countWait(within)
	return within, func(token int64, err error) {
		outcome := outcomeOf(err)
		span.SetAttributes(attribute.String("lockstep.outcome", outcome))
		if err == nil {
			span.SetAttributes(attribute.Int64("lockstep.token", token))
		}
		if outcome == "error" {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
		t.measureWait(within, counted, began, outcome)
	}
}

// countWait counts a call that waits, if a provider reads the metric: otherwise the attributes would be a wasted allocation.
func (t *Telemetry) countWait(ctx context.Context) (counted bool) {
	if counted = t.waiting.Enabled(ctx); counted {
		t.waiting.Add(ctx, 1, byKind[t.kind])
	}
	return counted
}

// measureWait measures a wait that has ended. counted is the result of countWait: a provider may have been installed since.
func (t *Telemetry) measureWait(ctx context.Context, counted bool, began time.Time, outcome string) {
	if counted {
		t.waiting.Add(ctx, -1, byKind[t.kind])
	}
	if t.waits.Enabled(ctx) {
		t.waits.Record(ctx, time.Since(began).Seconds(), byEnd[[2]string{t.kind, outcome}])
	}
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "granted"
	case errors.Is(err, ErrNotAcquired):
		return "not acquired"
	case errors.Is(err, ErrDeadlock):
		return "deadlock"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "given up"
	}
	return "error"
}

// Held measures one hold. The zero value is valid and measures no hold.
type Held struct {
	tel   *Telemetry
	began time.Time
}

// StartHold counts a hold, until its End.
func (t *Telemetry) StartHold() Held {
	if !t.held.Enabled(context.Background()) {
		return Held{}
	}
	t.held.Add(context.Background(), 1, byKind[t.kind])
	return Held{t, time.Now()}
}

// End measures a hold that has ended with the cause why. released is the cause of holds that were given back, maxHold of holds that have lasted too long.
func (h Held) End(why, released, maxHold error) {
	if h.tel == nil {
		return
	}
	reason := "other"
	for _, r := range []struct {
		err  error
		says string
	}{
		{released, "released"}, {maxHold, "max hold"}, {framework.ErrSessionLost, "session lost"}, {framework.ErrNodeGone, "node deleted"},
		{framework.ErrClosed, "closed"},
	} {
		if errors.Is(why, r.err) {
			reason = r.says
			break
		}
	}
	h.tel.held.Add(context.Background(), -1, byKind[h.tel.kind])
	h.tel.holds.Record(context.Background(), time.Since(h.began).Seconds(), byReason[[2]string{h.tel.kind, reason}])
}

// waitContext is the value that the context of a wait carries.
type waitContext struct {
	caller context.Context
	tel    *Telemetry
}

// waitKey is the context key of the waitContext.
type waitKey struct{}

// CallerContext returns the context that StartWait was called with. A lease carries its values: the span ends when the lease begins.
func CallerContext(ctx context.Context) context.Context {
	if w, ok := ctx.Value(waitKey{}).(*waitContext); ok {
		return w.caller
	}
	return ctx
}

// TraceContext is the trace context to write into a node.
func TraceContext(ctx context.Context, client *framework.Client) map[string]string {
	c := propagation.MapCarrier{}
	client.Propagators().Inject(ctx, c)
	return c
}

// LinkTimeout is how long a read for links may take. A wait that ends sooner waits for the read, whose answer is on its way.
const LinkTimeout = 100 * time.Millisecond

// linkToNodes reads the nodes of contenders ahead and links the wait's span to their spans, in the background. It returns a channel that is closed
// afterwards, or nil if the wait's span is not recorded.
func linkToNodes(ctx context.Context, s *framework.Session, nodes ...string) <-chan struct{} {
	if !IsTraced(ctx) {
		return nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		reading, cancel := context.WithTimeout(ctx, LinkTimeout)
		defer cancel()
		read, err := s.GetAll(reading, slices.Compact(nodes)...)
		if err != nil {
			return // the wait returns this error, if it lasts
		}
		for _, n := range read {
			if n.Err == nil {
				LinkToHolder(ctx, n.Data)
			}
		}
	}()
	return done
}

// LinkToHolder links a wait's span to the span of a contender that it waits for, if the data of that contender's node names the span.
func LinkToHolder(ctx context.Context, data []byte) {
	if !IsTraced(ctx) {
		return
	}
	var owner struct {
		Owner string            `json:"owner"`
		Trace map[string]string `json:"trace"`
	}
	if json.Unmarshal(data, &owner) != nil {
		return // another library's
	}
	LinkTo(ctx, owner.Owner, owner.Trace)
}

// LinkTo links a wait's span to the span of the holder that it waits for, by the holder's trace context.
func LinkTo(ctx context.Context, owner string, of map[string]string) {
	w, ok := ctx.Value(waitKey{}).(*waitContext)
	if !ok {
		return
	}
	holder := trace.SpanContextFromContext(w.tel.propagators.Extract(context.Background(), propagation.MapCarrier(of)))
	if holder.IsValid() {
		trace.SpanFromContext(ctx).AddLink(trace.Link{SpanContext: holder, Attributes: []attribute.KeyValue{attribute.String("lockstep.waited_for", owner)}})
	}
}

// IsTraced reports whether the span of a wait is recorded.
func IsTraced(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }
