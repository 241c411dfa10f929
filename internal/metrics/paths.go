package metrics

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// OtherPath stands for all paths beyond the first ones.
const OtherPath = "other"

// PathsOf returns the paths of a *framework.Client, which sets it.
var PathsOf func(client any) *Paths

// Paths are the paths that the gauges of a client's locks and elections name: the first ones, up to
// a number. A path keeps its place, so that what was counted under it is taken off there. A nil
// Paths names none.
type Paths struct {
	most int

	mu    sync.Mutex
	named map[string]bool
}

// NewPaths returns Paths that name most paths.
func NewPaths(most int) *Paths { return &Paths{most: most, named: map[string]bool{}} }

// With returns a set of attributes, with that of a path if paths are named.
func (p *Paths) With(path string, attributes ...attribute.KeyValue) metric.MeasurementOption {
	if p == nil {
		return With(attributes...)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.named[path]:
	case len(p.named) < p.most:
		p.named[path] = true
	default:
		path = OtherPath
	}
	return With(append(attributes, attribute.String(Path, path))...)
}
