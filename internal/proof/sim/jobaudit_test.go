package sim

import (
	"encoding/json"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/zktest"
)

// jobAudit checks every stored version of a scheduler's jobs against the version before: claims are
// allowed at that time, and each tick is counted once, as run or as missed.
type jobAudit struct {
	sim        *simulation
	path       string
	registered func(job string, by *process) // called after each registration; may be nil

	mu   sync.Mutex
	jobs map[string]*auditedJob
}

// auditedJob is the audit's state of a job.
type auditedJob struct {
	name    string
	exists  bool
	record  jobRecord
	counted map[int64]bool     // ticks of this registration that were counted
	claimed map[int64]int64    // ticks claimed as first attempts, with the generation of the registration
	claims  map[int64]jobClaim // by token
	removed []jobRemoval
	since   time.Time // time of the last registration; true time
}

type jobClaim struct{ generation int64 }

type jobRemoval struct {
	generation int64
	at         time.Time // true time
}

// jobRecord is the audited part of a job's stored record.
type jobRecord struct {
	Spec       string           `json:"spec"`
	Registered time.Time        `json:"registered"`
	Removed    time.Time        `json:"removed"`
	Generation int64            `json:"generation"`
	Since      time.Time        `json:"since"`
	Paused     time.Time        `json:"paused"`
	Last       time.Time        `json:"last"`
	Number     int64            `json:"number"`
	Fired      int64            `json:"fired"`
	Missed     map[string]int64 `json:"missed"`
	Running    []struct {
		Number  int64     `json:"n"`
		ID      string    `json:"id"`
		Tick    time.Time `json:"tick"`
		Manual  bool      `json:"manual"`
		Attempt int       `json:"attempt"`
	} `json:"running"`
}

// newJobAudit audits the jobs of the schedulers at a path.
func newJobAudit(sim *simulation, scene string, registered func(string, *process)) *jobAudit {
	audit := &jobAudit{sim: sim, path: scene, registered: registered, jobs: map[string]*auditedJob{}}
	sim.observer.addHandler(audit.observe)
	return audit
}

// observe checks a request that the server has carried out.
func (audit *jobAudit) observe(r zktest.Request) {
	parts := r.Parts
	if r.Op != zktest.OpMulti {
		parts = []zktest.Request{r}
	}
	if r.Err != 0 || slices.ContainsFunc(parts, func(p zktest.Request) bool { return p.Err != 0 }) {
		return
	}
	for _, part := range parts {
		dir, name := path.Split(part.Path)
		if dir != audit.path+"/jobs/" {
			continue
		}
		switch part.Op {
		case zktest.OpCreate, zktest.OpCreate2, zktest.OpSetData:
			if by := audit.sim.observer.processOf(r.Session); audit.checkWrite(name, part.Data, r) &&
				audit.registered != nil && by != nil {
				audit.registered(name, by)
			}
		case zktest.OpDelete:
			audit.checkDelete(name)
		}
	}
}

func (audit *jobAudit) job(name string) *auditedJob {
	j := audit.jobs[name]
	if j == nil {
		j = &auditedJob{name: name, claimed: map[int64]int64{}, claims: map[int64]jobClaim{}}
		audit.jobs[name] = j
	}
	return j
}

func (audit *jobAudit) checkDelete(name string) {
	audit.mu.Lock()
	defer audit.mu.Unlock()
	j := audit.job(name)
	if j.exists && j.record.Removed.IsZero() {
		audit.sim.addViolation(audit.path, "removal", "the record of %s was deleted, but the job was not removed", name)
	}
	j.exists = false
}

// checkWrite checks a written record, and reports whether the request registered the job.
func (audit *jobAudit) checkWrite(name string, data []byte, r zktest.Request) (registered bool) {
	audit.mu.Lock()
	defer audit.mu.Unlock()
	j := audit.job(name)
	var next jobRecord
	if err := json.Unmarshal(data, &next); err != nil {
		audit.sim.addViolation(audit.path, "record", "the record of %s cannot be read: %v", name, err)
		return false
	}
	before := j.record
	if !j.exists {
		before = jobRecord{}
	}
	if next.Registered.IsZero() { // the record was registered when its node was created
		if next.Registered = before.Registered; !j.exists {
			next.Registered = audit.sim.ensembleTime().Truncate(time.Millisecond)
		}
	}
	switch {
	case !j.exists, !before.Removed.IsZero() && next.Removed.IsZero():
		audit.checkRegistration(j, before, next)
		registered = true
	case before.Removed.IsZero() && !next.Removed.IsZero():
		audit.sim.history.add(audit.path, "%s is removed, generation %d", name, before.Generation)
		j.removed = append(j.removed, jobRemoval{before.Generation, time.Now()})
	default:
		audit.checkTicks(j, before, next)
	}
	audit.checkClaims(j, before, next, r.Zxid)
	j.exists, j.record = true, next
	return registered
}

// checkRegistration checks a registration. A registration after a removal keeps the run numbers and
// resets everything else.
func (audit *jobAudit) checkRegistration(j *auditedJob, before, next jobRecord) {
	audit.sim.history.add(audit.path, "%s is registered, generation %d", j.name, next.Generation)
	if j.exists && (next.Generation != before.Generation+1 || next.Number != before.Number) ||
		next.countedTicks() != 0 {
		audit.sim.addViolation(audit.path, "registration", "%s was registered again as %+v, after %+v",
			j.name, next, before)
	}
	j.counted, j.since = map[int64]bool{}, time.Now()
}

// checkTicks checks that each tick that has passed is counted once, and no other.
func (audit *jobAudit) checkTicks(j *auditedJob, before, next jobRecord) {
	if !next.Removed.IsZero() {
		return // runs of a removed job count nothing
	}
	passed := 0
	count := func(spec string, from, to time.Time, before bool) {
		schedule, err := scheduler.ParseSpec(spec, nil)
		if err != nil {
			panic(err)
		}
		for tick := schedule.Next(from); !tick.IsZero() && !tick.After(to) &&
			(!before || tick.Before(to)); tick = schedule.Next(tick) {
			if !j.counted[tick.Unix()] {
				j.counted[tick.Unix()] = true
				passed++
			}
		}
	}
	if next.Since.Equal(before.Since) && next.Spec == before.Spec {
		count(before.Spec, before.lastCounted(), next.Last, false)
	} else { // the job was resumed or rescheduled at that time
		if next.Since.Before(before.Since) {
			audit.sim.addViolation(audit.path, "ticks", "%s: the time of the first due tick went back from %v to %v",
				j.name, before.Since, next.Since)
		}
		count(before.Spec, before.lastCounted(), next.Since, false)
		if next.Spec != before.Spec {
			count(next.Spec, next.Since, next.Last, true)
		}
	}
	if got := next.countedTicks() - before.countedTicks(); got != int64(passed) {
		audit.sim.addViolation(audit.path, "ticks", "%s: %d ticks were due, %d were counted: %+v, after %+v", j.name,
			passed, got, next, before)
	}
}

// checkClaims checks the runs that this version claims.
func (audit *jobAudit) checkClaims(j *auditedJob, before, next jobRecord, zxid int64) {
	fresh := int64(0)
	for _, run := range next.Running {
		if run.Number <= before.Number {
			continue
		}
		fresh++
		j.claims[zxid] = jobClaim{before.Generation}
		broken := func(rule, format string, args ...any) {
			audit.sim.addViolation(audit.path, rule, "%s, attempt %d, of "+j.name+" "+format,
				append([]any{run.ID, run.Attempt}, args...)...)
		}
		if run.Number != before.Number+1 {
			broken("numbers", "has the number %d after %d", run.Number, before.Number)
		}
		if !before.Removed.IsZero() || !next.Removed.IsZero() {
			broken("removal", "was claimed of a removed job")
		}
		if !before.Paused.IsZero() && !run.Manual {
			broken("pause", "was claimed of a paused job")
		}
		tick := run.Tick.Unix()
		generation, claimedBefore := j.claimed[tick]
		switch {
		case run.Manual:
		case run.Attempt > 1 && (!claimedBefore || generation != before.Generation):
			broken("removal", "repeats a run that this registration has not claimed")
		case run.Attempt > 1:
		case claimedBefore:
			broken("at most once", "was claimed before")
		default:
			j.claimed[tick] = before.Generation
			schedule, err := scheduler.ParseSpec(before.Spec, nil)
			if err != nil {
				panic(err)
			}
			if !schedule.Next(run.Tick.Add(-time.Second)).Equal(run.Tick) {
				broken("one schedule", "is no tick of the stored schedule %q", before.Spec)
			}
			if !run.Tick.After(before.Registered) || !run.Tick.After(before.Since) {
				broken("one schedule", "was not due: the job was registered at %v, and resumed or rescheduled at %v",
					before.Registered, before.Since)
			}
			if most := audit.sim.latestEnsembleTime().Add(scheduler.MaxAhead); run.Tick.After(most) {
				broken("ahead", "was claimed too early: the ensemble's clock was at most %v",
					most.Add(-scheduler.MaxAhead))
			}
		}
	}
	if next.Number != before.Number+fresh {
		audit.sim.addViolation(audit.path, "numbers", "%s had %d runs, then %d, but %d were claimed", j.name,
			before.Number, next.Number, fresh)
	}
}

// lastCounted is the time up to which ticks have been counted.
func (r jobRecord) lastCounted() time.Time {
	return slices.MaxFunc([]time.Time{r.Registered, r.Since, r.Last}, time.Time.Compare)
}

// countedTicks is the number of ticks that were run or missed.
func (r jobRecord) countedTicks() int64 {
	n := r.Fired
	for _, missed := range r.Missed {
		n += missed
	}
	return n
}

// removals returns how often a job was removed.
func (audit *jobAudit) removals(name string) int {
	audit.mu.Lock()
	defer audit.mu.Unlock()
	return len(audit.job(name).removed)
}

// generationOf returns the registration in which a run was claimed.
func (audit *jobAudit) generationOf(name string, token int64) (generation int64, known bool) {
	audit.mu.Lock()
	defer audit.mu.Unlock()
	c, known := audit.job(name).claims[token]
	return c.generation, known
}

// removedAt returns when a registration was removed, or zero.
func (audit *jobAudit) removedAt(name string, generation int64) time.Time {
	audit.mu.Lock()
	defer audit.mu.Unlock()
	for _, r := range audit.job(name).removed {
		if r.generation == generation {
			return r.at
		}
	}
	return time.Time{}
}

// registeredSince returns since when a job is registered, or zero.
func (audit *jobAudit) registeredSince(name string) time.Time {
	audit.mu.Lock()
	defer audit.mu.Unlock()
	if j := audit.job(name); j.exists && j.record.Removed.IsZero() {
		return j.since
	}
	return time.Time{}
}
