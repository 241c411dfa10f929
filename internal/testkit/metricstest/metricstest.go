// Package metricstest lets tests read the metrics that a package has recorded.
package metricstest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Read returns the sums of a reader's counters, and how many measurements its histograms have. A
// key is the metric's name, followed by the values of its attributes.
func Read(t *testing.T, reader *sdkmetric.ManualReader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	values := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					values[key(m.Name, p.Attributes)] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					values[key(m.Name, p.Attributes)] = int64(p.Count)
				}
			}
		}
	}
	return values
}

func key(name string, by attribute.Set) string {
	for i := by.Iter(); i.Next(); {
		name += " " + i.Attribute().Value.String()
	}
	return name
}
