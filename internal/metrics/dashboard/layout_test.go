package dashboard

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPanelsHaveTheirOwnPlaceAndID checks for mistakes that Grafana accepts and then shows wrongly:
// ids that are used twice, panels that overlap or are not within the 24 columns, and panels with a
// fixed data source.
func TestPanelsHaveTheirOwnPlaceAndID(t *testing.T) {
	type source struct{ Type, UID string }
	var d struct {
		SchemaVersion int
		Templating    struct {
			List []struct{ Name, Type, Query string }
		}
		Panels []struct {
			ID          int
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			Datasource  *source
			Targets     []struct{ RefID, Expr string }
		}
	}
	text, err := os.ReadFile("../../../docs/grafana/lockstep.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	require.GreaterOrEqual(t, d.SchemaVersion, 36, "data sources are objects since")
	require.Equal(t, "datasource", d.Templating.List[0].Type)
	require.Equal(t, "prometheus", d.Templating.List[0].Query)
	ids, places := map[int]string{}, map[[2]int]string{}
	for _, p := range d.Panels {
		require.Positive(t, p.ID, p.Title)
		require.Empty(t, ids[p.ID], "%s has the id of another panel", p.Title)
		require.NotEmpty(t, p.Title)
		ids[p.ID] = p.Title
		g := p.GridPos
		require.True(t, g.X >= 0 && g.Y >= 0 && g.W > 0 && g.H > 0 && g.X+g.W <= 24, "%s: %+v", p.Title, g)
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				require.Empty(t, places[[2]int{x, y}], "%s overlaps", p.Title)
				places[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			require.Empty(t, p.Targets, p.Title)
			continue
		}
		require.Equal(t, &source{"prometheus", "${" + d.Templating.List[0].Name + "}"}, p.Datasource, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		refs := map[string]bool{}
		for _, target := range p.Targets {
			require.False(t, target.RefID == "" || refs[target.RefID] || target.Expr == "", p.Title)
			refs[target.RefID] = true
		}
	}
}
