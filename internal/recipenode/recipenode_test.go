package recipenode

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

// TestOf tells nodes by their paths, and instances of services by their data.
func TestOf(t *testing.T) {
	const id, one = "0f1e2d3c-0f1e-2d3c-0f1e-2d3c0f1e2d3c", `{"name":"billing","id":"one"}`
	for path, want := range map[string]struct {
		recipe Recipe
		of     string
		data   string
	}{
		"/q/tickets/items/0000000001/t-" + id + "-0000000007": {Queue, "/q", ""},
		"/a/q/writers/" + id + "/1f":                          {Writer, "/a/q", ""},
		"/cron/members/00000001-2f":                           {Scheduler, "/cron", ""},
		"/cron/jobs/one/run-17":                               {Scheduler, "/cron", ""},
		"/b/in-" + id + "/m-0000000003":                       {Barrier, "/b", ""},
		"/services/billing/one":                               {Service, "/services/billing", one},
		"/services/billing/two":                               {None, "", one},
		"/claims/one":                                         {None, "", ""},
	} {
		r := locks.Report{Path: path, Kind: locks.ClaimLock, Holders: []locks.Entry{{Data: want.data}}}
		recipe, of := Of(r)
		require.Equal(t, want.recipe, recipe, path)
		require.Equal(t, want.of, of, path)
		require.Equal(t, want.recipe != None, Is(r), path)
		r.Kind = locks.MutexLock
		require.False(t, Is(r), path)
	}
}
