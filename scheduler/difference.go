package scheduler

import (
	"fmt"
	"strings"
	"sync"
)

// differenceTeller tells of jobs that another member has declared in another way, once for each pair of declarations.
type differenceTeller struct {
	report *reporter

	mu   sync.Mutex
	told map[difference]bool
}

// difference is one job and two declarations of it.
type difference struct {
	job, member  string
	mine, theirs fingerprint
}

// maxTold is the number of differences beyond which the teller forgets those that have ended: one of the two members has left, or has another declaration now.
const maxTold = 10_000

// compare tells how the members' declarations differ from this member's. own begins the names of this process's nodes.
func (d *differenceTeller) compare(jobs []*job, members []member, own string) {
	present := map[difference]bool{}
	for _, m := range members {
		if strings.HasPrefix(m.node, own+"-") || len(m.declared) == 0 {
			continue
		}
		for _, j := range jobs {
			theirs := m.declared[jobKey(j.Name)]
			mine := j.fingerprint
			if theirs == 0 || theirs == mine || (theirs^mine)&nameBits != 0 || j.dropped.Load() {
				continue
			}
			one := difference{j.Name, m.id, mine, theirs}
			present[one] = true
			if d.isNew(one) {
				d.tell(j, m.id, mine^theirs)
			}
		}
	}
	d.forgetEnded(present)
}

func (d *differenceTeller) isNew(one difference) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.told[one] {
		return false
	}
	if d.told == nil {
		d.told = map[difference]bool{}
	}
	d.told[one] = true
	return true
}

// forgetEnded forgets all differences but the present ones if there are too many.
func (d *differenceTeller) forgetEnded(present map[difference]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.told) > maxTold {
		d.told = present
	}
}

// tell logs one difference and passes it to the observer.
func (d *differenceTeller) tell(j *job, member string, bits fingerprint) {
	what := "another schedule or zone"
	switch {
	case bits&scheduleBits == 0:
		what = "another description"
	case bits&textBits != 0:
		what += ", and another description"
	}
	mine := j.declaration()
	err := fmt.Errorf("member %q has it with %s; here it has %q in %s, described as %q", member, what, mine.spec, mine.zone, mine.description)
	d.report.warn("two members have registered a job differently", "job", j.Name, "member", member, "error", err)
	d.report.passEvent(Event{Kind: EventDiffers, Job: j.Name, Member: member, Err: err})
}
