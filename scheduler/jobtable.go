package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// jobTable is the jobs that this member has, and the runs of jobs that go on here.
type jobTable struct {
	// buffered; signals a change of jobs, or of leadership.refused, to the campaign, and to Run
	// while there is no job
	changed chan struct{}

	mu   sync.Mutex
	jobs map[string]*job
	runs map[string]*keptRuns // of those jobs, and of those that still run here
}

// keptRuns are the runs of a job while anything uses them: a definition, a run that goes on, or a
// check of the job.
type keptRuns struct {
	*localRuns
	users  int
	latest *job // the definition that was given last
}

func newJobTable() *jobTable {
	return &jobTable{changed: make(chan struct{}, 1), jobs: map[string]*job{}, runs: map[string]*keptRuns{}}
}

// addJob adds a job. Its error wraps framework.ErrInvalid.
func (t *jobTable) addJob(j *job) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.jobs[j.Name] != nil {
		return fmt.Errorf("%w %q", errDuplicateJob, j.Name)
	}
	t.storeJob(j)
	return nil
}

// replaceJob replaces a job's definition and returns the old one. Its error wraps
// framework.ErrNotFound.
func (t *jobTable) replaceJob(j *job) (old *job, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old = t.jobs[j.Name]; old == nil {
		return nil, errNotHere(j.Name)
	}
	j.generation.Store(old.generation.Load())
	j.entered.Store(old.entered.Load())
	t.storeJob(j)
	old.dropped.Store(true)
	t.releaseLocked(old.local)
	return old, nil
}

func errNotHere(name string) error {
	return fmt.Errorf("%w %q: this member does not have it", errUnknownJob, name)
}

// storeJob stores a definition, which uses the job's runs from now on. The table is locked.
func (t *jobTable) storeJob(j *job) {
	kept := t.runs[j.Name]
	if kept == nil {
		kept = &keptRuns{localRuns: &localRuns{name: j.Name}}
		t.runs[j.Name] = kept
	}
	kept.users++
	kept.latest = j
	j.local = kept.localRuns
	t.jobs[j.Name] = j
	t.signalChange()
}

// removeJob removes a definition, and reports false unless it is the job's present one. Runs go on.
func (t *jobTable) removeJob(j *job) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.jobs[j.Name] != j {
		return false
	}
	delete(t.jobs, j.Name)
	j.dropped.Store(true)
	t.releaseLocked(j.local)
	t.signalChange()
	return true
}

func (t *jobTable) signalChange() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// findJob is this member's definition of a job, or nil.
func (t *jobTable) findJob(name string) *job {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.jobs[name]
}

// allJobs are this member's jobs, by name.
func (t *jobTable) allJobs() []*job {
	t.mu.Lock()
	defer t.mu.Unlock()
	jobs := make([]*job, 0, len(t.jobs))
	for _, name := range slices.Sorted(maps.Keys(t.jobs)) {
		jobs = append(jobs, t.jobs[name])
	}
	return jobs
}

func (t *jobTable) isEmpty() bool { return !t.hasJobWhere(func(*job) bool { return true }) }

// allowReregistration makes the next registration register removed jobs again, as if they had just
// been added.
func (t *jobTable) allowReregistration() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, j := range t.jobs {
		j.entered.Store(false)
	}
}

// hasJobWhere reports whether this member has a job for which is returns true.
func (t *jobTable) hasJobWhere(is func(*job) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, j := range t.jobs {
		if is(j) {
			return true
		}
	}
	return false
}

// publishedKeys are the keys of this member's jobs of a placement that it can run with its labels.
func (t *jobTable) publishedKeys(placement Placement, labels map[string]string) []uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return jobKeys(t.jobs, placement, labels)
}

// knownNames are those of the jobs that this member has or that run here, sorted.
func (t *jobTable) knownNames() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.runs))
}

// runningNames are the names of the jobs of which runs go on here, sorted.
func (t *jobTable) runningNames() (going []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(t.runs)) {
		if len(t.runs[name].allRuns()) > 0 {
			going = append(going, name)
		}
	}
	return going
}

// findRuns returns the definition of a job and its runs here; each may be nil.
func (t *jobTable) findRuns(name string) (*job, *localRuns) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kept := t.runs[name]; kept != nil {
		return t.jobs[name], kept.localRuns
	}
	return nil, nil
}

// latestDefinition is a job's latest definition. The caller must have kept the job's runs with
// keepRuns.
func (t *jobTable) latestDefinition(l *localRuns) *job {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.runs[l.name].latest
}

// keepRuns keeps a job's runs in the table until releaseRuns. It returns false if they were dropped
// from the table before.
func (t *jobTable) keepRuns(l *localRuns) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := t.runs[l.name]
	if kept == nil || kept.localRuns != l {
		return false
	}
	kept.users++
	return true
}

func (t *jobTable) releaseRuns(l *localRuns) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.releaseLocked(l)
}

func (t *jobTable) releaseLocked(l *localRuns) {
	kept := t.runs[l.name]
	if kept.users--; kept.users == 0 {
		delete(t.runs, l.name)
	}
}
