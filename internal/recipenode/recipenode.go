// Package recipenode tells the ephemeral nodes of other recipes from claims.
package recipenode

import (
	"encoding/json"
	"regexp"

	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// paths are the paths of ephemeral nodes of queues, schedulers and barriers.
var paths = regexp.MustCompile(
	`/(members/[0-9a-f]{8}-[0-9a-f]+|jobs/[^/]+/run-\d+|` +
		`writers/[0-9a-f-]{36}/[0-9a-f]+|in-[0-9a-f-]{36}/m-\d{10})$`)

// Is reports whether a report's path is a node of a queue, a scheduler, a barrier or a service.
// Package locks reports it as a claim: the servers do not know what an ephemeral node is for.
func Is(r locks.Report) bool {
	if r.Kind != locks.ClaimLock {
		return false
	}
	if paths.MatchString(r.Path) || queuelayout.IsTicket(r.Path) {
		return true
	}
	dir, id := znode.Split(r.Path)
	_, service := znode.Split(dir)
	for _, e := range r.Holders {
		var instance struct {
			Name string `json:"name"`
			ID   string `json:"id"`
		}
		if json.Unmarshal([]byte(e.Data), &instance) == nil && instance.Name == service && instance.ID == id {
			return true
		}
	}
	return false
}
