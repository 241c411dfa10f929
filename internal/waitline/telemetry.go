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
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/stored"
)

// module begins the names of packages in the telemetry that users see.
const module = "github.com/lockstep-go/lockstep/"

// Telemetry traces and measures the waits for one lock or election, and the holds of a lock.
type Telemetry struct {
	kind        string
	tracer      trace.Tracer
	attributes  trace.SpanStartEventOption // of each span
	propagators propagation.TextMapPropagator
	waits       metric.Float64Histogram
	holds       metric.Float64Histogram
	waiting     metric.Int64UpDownCounter
	holdMetric  metric.Int64UpDownCounter
	levels      metric.MeasurementOption // of waiting and holdMetric
	deadlocks   metric.Int64Counter
	ends        []HoldEnd
}

// HoldEnd is a cause of a hold's end that only one store has, and what metrics call it.
type HoldEnd struct {
	Cause  error
	Reason string // one of endReasons
}

// NewTelemetry returns the telemetry of the lock or election at path. kind is one of lockKinds.
func NewTelemetry(c *framework.Client, path, kind string) *Telemetry {
	t := NewTelemetryOf("locks", path, kind, c.TracerProvider(), c.MeterProvider())
	t.propagators, t.deadlocks = c.Propagators(), metrics.LockDeadlocks.Counter(c.MeterProvider())
	if paths := metrics.PathsOf(c); paths != nil {
		t.levels = paths.With(path, attribute.String(metrics.LockKind, kind))
	}
	return t
}

// NewTelemetryOf returns the telemetry of a lock of a package, which has its holds and waits, and
// neither links nor deadlocks.
func NewTelemetryOf(pkg, path, kind string, tracers trace.TracerProvider, meters metric.MeterProvider,
	ends ...HoldEnd) *Telemetry {
	return &Telemetry{kind: kind, tracer: tracers.Tracer(module + pkg), ends: ends,
		attributes: trace.WithAttributes(attribute.String("lockstep.path", path),
			attribute.String("lockstep.lock.kind", kind)),
		levels: byKind[kind],
		waits:  metrics.LockWait.In(pkg).Histogram(meters), holds: metrics.LockHold.In(pkg).Histogram(meters),
		waiting: metrics.LockWaiting.In(pkg).UpDown(meters), holdMetric: metrics.LockHeld.In(pkg).UpDown(meters)}
}

// The attributes of metrics, made once.
var (
	lockKinds  = []string{"mutex", "read", "write", "semaphore", "claim", "election"}
	outcomes   = []string{"granted", "not acquired", "deadlock", "given up", "error"}
	endReasons = []string{"released", "max hold", "session lost", "node deleted", "closed", "expired", "lost", "other"}
	byKind     = metrics.Values(metrics.LockKind, lockKinds...)
	byOutcome  = kindsWith(metrics.Outcome, outcomes...)
	byReason   = kindsWith(metrics.Reason, endReasons...)
)

// kindsWith returns the attributes of each kind with each value of another attribute.
func kindsWith(key string, values ...string) map[[2]string]metric.MeasurementOption {
	sets := map[[2]string]metric.MeasurementOption{}
	for _, kind := range lockKinds {
		for _, v := range values {
			sets[[2]string{kind, v}] = metrics.With(attribute.String(metrics.LockKind, kind), attribute.String(key, v))
		}
	}
	return sets
}

// RecordDeadlock counts a deadlock whose youngest request has the context ctx, and adds an event to
// the span of ctx. broken says that the request fails.
func (t *Telemetry) RecordDeadlock(ctx context.Context, text string, broken bool) {
	trace.SpanFromContext(ctx).AddEvent("lockstep.lock.deadlock", trace.WithAttributes(
		attribute.String("lockstep.deadlock", text), attribute.Bool("lockstep.deadlock.broken", broken)))
	t.deadlocks.Add(ctx, 1, metrics.With(attribute.String(metrics.LockKind, t.kind),
		attribute.Bool(metrics.Broken, broken)))
}

// Wait is one call that waits for a lock or an election. It has a span.
type Wait struct {
	// Caller is the context of the call. The context of a grant carries its values, because the
	// span ends when the grant begins.
	Caller context.Context
	// Queued, unless it is nil, is called with the node of a contender that is not granted at once.
	Queued func(primitives.Created)

	tel     *Telemetry
	ctx     context.Context // of the span
	span    trace.Span
	began   time.Time
	counted bool // a provider may be installed before the end of the wait
}

// StartWait starts a wait, and returns the context of its span. The caller calls End.
func (t *Telemetry) StartWait(caller context.Context, op string) (context.Context, *Wait) {
	w := &Wait{Caller: caller, tel: t, began: time.Now()}
	w.ctx, w.span = t.tracer.Start(caller, "lockstep.lock."+op, t.attributes)
	w.counted = t.countWait(w.ctx)
	return w.ctx, w
}

// End ends the wait, with the token of the granted lock, or with the error of the call. The span of
// a try that was not granted, of a deadlock or of a cancelled call has an outcome and no error
// status.
func (w *Wait) End(token int64, err error) {
	outcome := outcomeOf(err)
	if w.span.IsRecording() {
		w.span.SetAttributes(attribute.String("lockstep.outcome", outcome))
		if err == nil {
			w.span.SetAttributes(attribute.Int64("lockstep.token", token))
		}
		if outcome == "error" {
			w.span.SetStatus(codes.Error, err.Error())
		}
	}
	w.span.End()
	w.tel.measureWait(w.ctx, w.counted, w.began, outcome)
}

// countWait counts a call that waits, if a provider reads the metric. Without a provider it saves
// the allocation of the attributes.
func (t *Telemetry) countWait(ctx context.Context) (counted bool) {
	if counted = t.waiting.Enabled(ctx); counted {
		t.waiting.Add(ctx, 1, t.levels)
	}
	return counted
}

// measureWait measures a wait that has ended. counted is the result of countWait, since a provider
// may have been installed meanwhile.
func (t *Telemetry) measureWait(ctx context.Context, counted bool, began time.Time, outcome string) {
	if counted {
		t.waiting.Add(ctx, -1, t.levels)
	}
	if t.waits.Enabled(ctx) {
		t.waits.Record(ctx, time.Since(began).Seconds(), byOutcome[[2]string{t.kind, outcome}])
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

// HoldMeasurement measures one hold. The zero value measures nothing.
type HoldMeasurement struct {
	tel   *Telemetry
	began time.Time
}

// StartHold counts a hold until End is called.
func (t *Telemetry) StartHold() HoldMeasurement {
	if !t.holdMetric.Enabled(context.Background()) {
		return HoldMeasurement{}
	}
	t.holdMetric.Add(context.Background(), 1, t.levels)
	return HoldMeasurement{t, time.Now()}
}

// End measures a hold that has ended with cause. released is the cause of the end of holds that
// were released, maxHold of holds that have lasted too long.
func (h HoldMeasurement) End(cause, released, maxHold error) {
	if h.tel == nil {
		return
	}
	reason := "other"
	for _, e := range append([]HoldEnd{
		{released, "released"}, {maxHold, "max hold"}, {framework.ErrSessionLost, "session lost"},
		{framework.ErrNodeGone, "node deleted"},
		{framework.ErrClosed, "closed"},
	}, h.tel.ends...) {
		if errors.Is(cause, e.Cause) {
			reason = e.Reason
			break
		}
	}
	h.tel.holdMetric.Add(context.Background(), -1, h.tel.levels)
	h.tel.holds.Record(context.Background(), time.Since(h.began).Seconds(), byReason[[2]string{h.tel.kind, reason}])
}

// TraceContext returns the trace context of ctx in the format of the client's propagators, to store
// it in a node.
func TraceContext(ctx context.Context, client *framework.Client) map[string]string {
	c := propagation.MapCarrier{}
	client.Propagators().Inject(ctx, c)
	for key, text := range c {
		c[key] = stored.Text(text)
	}
	return c
}

// LinkTimeout is how long the read of nodes for links may take. A wait that is granted earlier
// returns after that read.
const LinkTimeout = 100 * time.Millisecond

// linkToNodes reads the nodes of contenders ahead and links the wait's span to their spans, in the
// background. It returns a channel that is closed when this is done, or nil if the wait's span is
// not recorded.
func (w *Wait) linkToNodes(ctx context.Context, s *framework.Session, nodes ...string) <-chan struct{} {
	if !w.IsTraced() {
		return nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		reading, cancel := context.WithTimeout(ctx, LinkTimeout)
		defer cancel()
		read, err := s.GetAll(reading, slices.Compact(nodes)...)
		if err != nil {
			return // the span has no links then
		}
		for _, n := range read {
			if n.Err == nil {
				w.LinkToHolder(n.Data)
			}
		}
	}()
	return done
}

// LinkToHolder links the wait's span to the span of a contender ahead, if the data of that
// contender's node has a trace context.
func (w *Wait) LinkToHolder(data []byte) {
	if !w.IsTraced() {
		return
	}
	var owner struct {
		recipe.Owner
		Trace map[string]string `json:"trace"`
	}
	if json.Unmarshal(data, &owner) != nil {
		return // another library has written it
	}
	w.LinkTo(owner.Identity, owner.Trace)
}

// LinkTo links the wait's span to the span of a holder. owner is the holder's name, traceContext
// what TraceContext has returned to it.
func (w *Wait) LinkTo(owner string, traceContext map[string]string) {
	holder := trace.SpanContextFromContext(w.tel.propagators.Extract(context.Background(),
		propagation.MapCarrier(traceContext)))
	if holder.IsValid() {
		w.span.AddLink(trace.Link{SpanContext: holder,
			Attributes: []attribute.KeyValue{attribute.String("lockstep.waited_for", owner)}})
	}
}

// IsTraced reports whether the span of the wait is recorded.
func (w *Wait) IsTraced() bool { return w.span.IsRecording() }
