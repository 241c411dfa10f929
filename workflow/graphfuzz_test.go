package workflow

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// FuzzGraphs: anyone may write below a run what looks like the record of a graph.
func FuzzGraphs(f *testing.F) {
	for _, data := range []string{
		"", "null", "{}", `{"v":1,"kind":"graph"}`, `{"v":2,"kind":"graph","steps":[{"name":"a"}]}`,
		`{"v":1,"kind":"graph","steps":[{"name":"b","after":["a"]},{"name":"a"}]}`,
		`{"v":1,"kind":"graph","steps":[{"name":"a","after":["b"]},{"name":"b","after":["a"]}]}`,
		`{"v":1,"kind":"graph","steps":[{"name":"\u202e"}]}`,
		`{"v":1,"kind":"graph","steps":[{"name":"a"},{"name":"b"},{"name":"c","after":["a","b"]},{"name":"d","after":["c","a"]}],"new":1}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		shape, err := parseShape(data, "graph:g")
		graphs := GraphsIn([]StepRecord{{Name: "graph:g", Result: data}})
		if err != nil {
			require.True(t, errors.Is(err, framework.ErrBadRecord) || errors.Is(err, framework.ErrNewer) ||
				errors.Is(err, errForeign), "%v", err)
			require.Empty(t, graphs)
			return
		}
		require.Empty(t, shape.differences(shape))
		require.Len(t, graphs, 1)
		require.Len(t, graphs[0].Steps, len(shape.Steps))
		shown := map[string]int{}
		for _, s := range graphs[0].Steps {
			require.NoError(t, checkName(s.Name))
			for _, name := range s.After {
				level, ok := shown[name]
				require.True(t, ok, "%q is shown before %q", s.Name, name)
				require.Less(t, level, s.Level)
			}
			shown[s.Name] = s.Level
		}
		again, err := encodeRecord(shape)
		require.NoError(t, err)
		same, err := parseShape(again, "graph:g")
		require.NoError(t, err)
		require.Empty(t, shape.differences(same))
	})
}
