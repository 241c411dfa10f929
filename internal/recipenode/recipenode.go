// Package recipenode tells the ephemeral nodes of other recipes from claims.
package recipenode

import (
	"encoding/json"
	"regexp"

	"github.com/lockstep-go/lockstep/internal/joblayout"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// Recipe is what an ephemeral node belongs to.
type Recipe int

// The recipes. None is that of a claim.
const (
	None      Recipe = iota
	Queue            // a consumer has an item of it
	Writer           // a producer puts into a queue
	Scheduler        // its member, or a run of a job
	Barrier          // a member waits at it or is inside
	Service          // an instance of it
)

// barrierMember matches the paths of members of double barriers.
var barrierMember = regexp.MustCompile(`^(.+)/in-[0-9a-f-]{36}/m-[0-9]{10}$`)

// Of tells which recipe the node of a report belongs to, and the recipe's path. Package locks
// reports such a node as a claim: the servers do not know what an ephemeral node is for.
func Of(r locks.Report) (Recipe, string) {
	if r.Kind != locks.ClaimLock {
		return None, ""
	}
	if queue, ok := queuelayout.QueueOfTicket(r.Path); ok {
		return Queue, queue
	}
	if queue, ok := queuelayout.QueueOfWriter(r.Path); ok {
		return Writer, queue
	}
	if scheduler, ok := joblayout.SchedulerOfNode(r.Path); ok {
		return Scheduler, string(scheduler)
	}
	if found := barrierMember.FindStringSubmatch(r.Path); found != nil {
		return Barrier, found[1]
	}
	dir, id := znode.Split(r.Path)
	_, service := znode.Split(dir)
	for _, e := range r.Holders {
		var instance struct {
			Name string `json:"name"`
			ID   string `json:"id"`
		}
		if json.Unmarshal([]byte(e.Data), &instance) == nil && instance.Name == service && instance.ID == id {
			return Service, dir
		}
	}
	return None, ""
}

// Is reports whether a report's path is a node of a queue, a scheduler, a barrier or a service.
func Is(r locks.Report) bool {
	recipe, _ := Of(r)
	return recipe != None
}
