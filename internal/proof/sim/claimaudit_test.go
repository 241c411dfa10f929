package sim

import (
	"regexp"
	"strings"
	"sync"

	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/zktest"
)

// claimAudit knows from the server's requests which claims of a parallel queue were given up. A
// ticket that a living consumer deletes without its item was no attempt; but if the item is put
// about then, the queue may take it for one.
type claimAudit struct {
	sim   *simulation
	queue string

	mu      sync.Mutex
	places  map[string][]string // of each item, the nodes in which it was stored
	givenUp map[string]bool     // nodes of items whose tickets were deleted without them
}

func newClaimAudit(sim *simulation, queue string) *claimAudit {
	a := &claimAudit{sim: sim, queue: queue, places: map[string][]string{}, givenUp: map[string]bool{}}
	sim.observer.addHandler(a.look)
	return a
}

// mostExtraAttempts is how many attempts of an item may be explained by claims that were given up:
// one for each node in which it was stored.
func (a *claimAudit) mostExtraAttempts(item string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, place := range a.places[item] {
		if a.givenUp[place] {
			a.sim.countOperation("item of a claim given up")
			n++
		}
	}
	return n
}

// itemName finds the name of an item in its node's data.
var itemName = regexp.MustCompile(`p[0-9.]+[a-z]-[0-9]{4,}`)

func (a *claimAudit) look(r zktest.Request) {
	if r.Err != 0 {
		return
	}
	parts := r.Parts
	if len(parts) == 0 {
		parts = []zktest.Request{r}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	removed := map[string]bool{}
	for _, part := range parts {
		if part.Op == zktest.OpDelete {
			removed[part.Path] = true
		}
	}
	for _, part := range parts {
		switch part.Op {
		case zktest.OpDelete:
			if place := a.placeOfTicket(part.Path); place != "" && !removed[place] {
				a.givenUp[place] = true
				a.sim.countOperation("claim given up")
			}
		case zktest.OpCreate, zktest.OpCreate2:
			if name := itemName.FindString(string(part.Data)); name != "" && belongsTo(part.Result, a.queue) {
				a.places[name] = append(a.places[name], part.Result)
			}
		}
	}
}

// placeOfTicket is the item's node that a ticket claims, or "". The ticket
// tickets/<lane>/<segment>/t-<id>-<number> claims i-<number> of the same segment.
func (a *claimAudit) placeOfTicket(path string) string {
	rest, is := strings.CutPrefix(path, a.queue+"/tickets/")
	if !is {
		return ""
	}
	segment, name := znode.Split(rest)
	number := name[strings.LastIndex(name, "-")+1:]
	if !strings.HasPrefix(segment, "items/") {
		segment = "lanes/" + segment
	}
	return a.queue + "/" + segment + "/i-" + number
}
