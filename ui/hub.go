package ui

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/internal/recipenode"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/internal/survey"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/workflow"
)

// snapshot is what a scan has seen. It does not change.
type snapshot struct {
	number int64     // counts the snapshots
	at     time.Time // of the scan; zero before the first
	took   time.Duration
	sent   int64 // requests of the scan
	monitor.Report
	barriers []barrier.Report
	findings []finding
	unread   []string // what could not be read of barriers
	places   placeCounts
	servers  []serverState

	// nodes of other recipes are not in locks, but in Locks
	locks      []locks.Report
	locksAt    map[string]locks.Report                  // by path
	problemsAt map[string][]finding                     // by path, also those that follow from others
	holdings   func() map[framework.SessionID][]holding // computed when first needed

	failed error     // why the latest scan has failed, or nil
	since  time.Time // when scans began to fail
}

// placeCounts are numbers for the menu. They are -1 if they could not be counted.
type placeCounts struct {
	at                       time.Time
	groups, services, values int
}

// countInterval is how often a hub counts what only its own pages show.
const countInterval = 10 * time.Second

// hub looks for all open pages. It scans while a page waits for changes, and when a page is opened
// whose last scan is old.
type hub struct {
	client   *framework.Client
	root     string
	interval time.Duration
	hideData bool
	scanner  *monitor.Scanner // used by the scan that is under way only, as are places and asked
	places   placeCounts
	asked    time.Time // when the latest round of questions to servers began

	streams atomic.Int64  // open pages that are followed
	stirred chan struct{} // gets a value when stale has got a directory

	life  context.Context // ends with close
	end   context.CancelFunc
	tasks sync.WaitGroup // scans

	mu       sync.Mutex
	newest   *snapshot
	scanning chan struct{}       // closed at the end of the scan that is under way, or nil
	changed  chan struct{}       // closed at the next snapshot
	pages    int                 // that wait for changes
	shown    map[string]int      // what they are about
	watched  map[string]bool     // directories
	stale    map[string][]string // watched directories that have changed, with the names that they had
	looping  bool
	expired  bool
	details  map[string]*detail // of the latest snapshot
	memory   memory
	servers  []serverState // of the latest round
}

const (
	scanTime = 30 * time.Second // a scan may take
	stall    = 3 * time.Second  // a scan may wait for an answer
)

// errStalled is the cause of a scan's end after stall.
var errStalled = errors.New("no server has answered for some seconds")

// giveUpStalled ends a scan when it has sent no further request for a time: each answer leads to
// the next request.
func (h *hub) giveUpStalled(ctx context.Context, end context.CancelCauseFunc) {
	ticker := time.NewTicker(stall / 4)
	defer ticker.Stop()
	sent, since := h.client.Status().Requests, time.Now()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if now := h.client.Status().Requests; now != sent {
			sent, since = now, time.Now()
		} else if time.Since(since) >= stall {
			end(errStalled)
			return
		}
	}
}

func newHub(client *framework.Client, s settings, scanner *monitor.Scanner) *hub {
	h := &hub{client: client, root: s.root, interval: s.interval, hideData: s.hideData, scanner: scanner,
		changed: make(chan struct{}), stirred: make(chan struct{}, 1), shown: map[string]int{},
		watched: map[string]bool{}, stale: map[string][]string{}, newest: &snapshot{},
		details: map[string]*detail{}, memory: newMemory()}
	h.life, h.end = context.WithCancel(context.Background())
	h.index(h.newest)
	return h
}

func (h *hub) close() {
	h.end()
	h.tasks.Wait()
}

// latest is the latest snapshot, which may be old.
func (h *hub) latest() *snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest
}

// expire makes the hub scan for the next page: an action has changed something.
func (h *hub) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expired = true
}

// firstScan is how long a page waits for a scan before it shows what there is.
const firstScan = 3 * time.Second

// fresh returns a snapshot that is not older than the interval, or the latest one if no scan ends
// in time.
func (h *hub) fresh(ctx context.Context) *snapshot {
	timer := time.NewTimer(firstScan)
	defer timer.Stop()
	for range 2 { // the first time it may wait for a scan of a few locks only
		h.mu.Lock()
		if !h.expired && time.Since(h.newest.at) < max(h.interval, 2*h.newest.took) || h.life.Err() != nil {
			defer h.mu.Unlock()
			return h.newest
		}
		done := h.beginScan(h.scan)
		h.mu.Unlock()
		select {
		case <-done:
		case <-timer.C:
			return h.latest()
		case <-ctx.Done():
			return h.latest()
		}
	}
	return h.latest()
}

// beginScan begins a scan, unless one is under way, and returns what is closed at its end. A scan
// that returns nil changes nothing. The caller holds mu.
func (h *hub) beginScan(scan func() *snapshot) <-chan struct{} {
	if h.scanning == nil && h.life.Err() == nil {
		done := make(chan struct{})
		h.scanning = done
		h.tasks.Go(func() {
			s := scan()
			h.mu.Lock()
			defer h.mu.Unlock()
			if s != nil {
				h.publish(s)
			}
			h.scanning = nil
			close(done)
		})
	}
	return h.scanning
}

// publish makes a snapshot the latest one. The caller holds mu.
func (h *hub) publish(s *snapshot) {
	former := h.newest
	s.number = former.number + 1
	if s.failed != nil { // what was seen before stays
		kept := *former
		kept.number, kept.failed = s.number, s.failed
		if former.failed == nil {
			kept.since = time.Now()
		}
		s = &kept
	} else {
		h.memory.add(former, s, time.Now())
	}
	s.servers = slices.Clone(h.servers)
	h.newest = s
	for key, d := range h.details { // what was read before stays while nothing can be read
		if s.failed == nil || !d.read.Load() || strings.HasPrefix(key, fragmentsOf) {
			delete(h.details, key)
		}
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

// scan reads everything once.
func (h *hub) scan() *snapshot {
	h.mu.Lock()
	h.expired = false
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(h.life, scanTime)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go h.giveUpStalled(ctx, end)
	s := &snapshot{at: time.Now()}
	roles := h.askServers(s.at)
	before := h.client.Status().Requests
	s.Report, s.failed = h.scanner.Scan(ctx)
	// No monitor judges barriers, and a survey searches each part by itself: one for all would send
	// as many requests.
	if s.failed == nil {
		var seen *survey.Survey
		seen, s.failed = survey.Read(ctx, h.client, h.root, survey.Barriers, nil)
		s.barriers = seen.Barriers
		for _, u := range seen.Unread {
			s.unread = append(s.unread, unreadText(h.client, u.Err))
		}
	}
	if s.failed == nil && s.at.Sub(h.places.at) >= countInterval {
		h.places = placeCounts{s.at, h.countFound(ctx, members.Find), h.countFound(ctx, registry.Find),
			h.countFound(ctx, config.Find)}
	}
	s.places = h.places
	if s.failed != nil && context.Cause(ctx) == errStalled { //nolint:errorlint // it is not wrapped
		s.failed = errStalled
	}
	slices.SortFunc(s.barriers, func(a, b barrier.Report) int { return strings.Compare(a.Path, b.Path) })
	h.index(s)
	s.took, s.sent = time.Since(s.at), h.client.Status().Requests-before
	pause(h.life, waitForRoles, roles)
	return s
}

// scanAgain reads the locks at and below some paths, and those that are new or gone in directories,
// which had these names before. It keeps what former has beside them. It returns nil if it cannot
// read them. created are the paths that are new.
func (h *hub) scanAgain(former *snapshot, paths []string,
	above map[string][]string) (s *snapshot, created []string) {
	ctx, cancel := context.WithTimeout(h.life, stall)
	defer cancel()
	for directory, before := range above {
		names, _, err := h.client.Children(ctx, directory)
		if err != nil {
			return nil, nil
		}
		known := map[string]bool{}
		for _, name := range before {
			known[name] = true
		}
		for _, name := range names {
			if !known[name] {
				created = append(created, znode.Join(directory, name))
			}
			delete(known, name)
		}
		for name := range known { // it was deleted
			paths = append(paths, znode.Join(directory, name))
		}
	}
	report, err := moduleonly.ScanLocksAgain(ctx, h.scanner, slices.Concat(paths, created))
	if err != nil {
		return nil, nil
	}
	again := *former
	again.Report = report.(monitor.Report)
	h.index(&again)
	return &again, created
}

// index hides data, and fills in what follows from what was read.
func (h *hub) index(s *snapshot) {
	s.locks, s.locksAt, s.problemsAt = nil, map[string]locks.Report{}, map[string][]finding{}
	ofRecipe := map[string]recipeNode{} // by path; decided before data is hidden
	for _, r := range s.Locks {
		recipe, path := recipenode.Of(r)
		if r.Kind == locks.NoLock || recipe != recipenode.None {
			ofRecipe[r.Path] = recipeNode{recipe, path}
		}
	}
	s.holdings = sync.OnceValue(func() map[framework.SessionID][]holding { return holdingsOf(s, ofRecipe) })
	if h.hideData {
		hideReport(&s.Report)
	}
	slices.SortFunc(s.Runs, func(a, b workflow.Report) int {
		return cmp.Or(cmp.Compare(runWeight(b), runWeight(a)), b.Changed.Compare(a.Changed))
	})
	for _, r := range s.Locks {
		s.locksAt[r.Path] = r
		if _, known := ofRecipe[r.Path]; !known {
			s.locks = append(s.locks, r)
		}
	}
	s.findings = judge(s, sharedreport.Credentials(h.client.Config()))
	for _, f := range allFindings(s.findings) {
		for _, path := range locksOf(s, f) {
			s.problemsAt[path] = append(s.problemsAt[path], f)
		}
	}
}

// countFound counts what a recipe finds below the root.
func (h *hub) countFound(ctx context.Context,
	find func(context.Context, *framework.Client, string) iter.Seq2[string, error]) (n int) {
	for _, err := range find(ctx, h.client, h.root) {
		switch {
		case err == nil:
			n++
		case !errors.Is(err, framework.ErrNoAuth):
			return -1
		}
	}
	return n
}

// waitBriefly waits for another snapshot than the one with this number. It returns nil without an
// error when the time is over.
func (h *hub) waitBriefly(ctx context.Context, number int64, d time.Duration) (*snapshot, error) {
	h.mu.Lock()
	s, changed := h.newest, h.changed
	h.mu.Unlock()
	if s.number != number {
		return s, nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
		return h.latest(), nil
	case <-timer.C:
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-h.life.Done():
		return nil, framework.ErrClosed
	}
}

// open counts a page that waits for changes, and what it is about, or "". The hub scans until leave
// was called for each.
func (h *hub) open(path string) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pages++
	if path != "" {
		h.shown[path]++
	}
	if !h.looping && h.life.Err() == nil {
		h.looping = true
		h.tasks.Go(h.scanWhileOpen)
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.pages--
		if h.shown[path]--; h.shown[path] <= 0 {
			delete(h.shown, path)
		}
	}
}

// errNotRead is returned for what was not read before servers went away.
var errNotRead = errors.New("no server answers at present, and this was not read before; reload the page later")

// fragmentsOf is the beginning of the keys of rendered parts of pages.
const fragmentsOf = "page "

// detail is what a page has read beside the snapshot, for all visitors of the same page.
type detail struct {
	once  sync.Once
	value any
	err   error
	read  atomic.Bool // without an error
}

// read returns what f reads, once for each snapshot and key, whatever the number of pages.
func read[T any](ctx context.Context, h *hub, s *snapshot, key string,
	f func(ctx context.Context) (T, error)) (T, error) {
	h.mu.Lock()
	if h.newest != s { // an old page: it reads for itself
		h.mu.Unlock()
		return f(ctx)
	}
	d := h.details[key]
	if d == nil && s.failed != nil && h.client.Status().State != framework.Connected &&
		!strings.HasPrefix(key, fragmentsOf) {
		h.mu.Unlock()
		var none T
		return none, errNotRead
	}
	if d == nil {
		d = &detail{}
		h.details[key] = d
	}
	h.mu.Unlock()
	d.once.Do(func() {
		ctx, cancel := context.WithTimeout(h.life, firstScan) // another page may wait for it
		defer cancel()
		d.value, d.err = f(ctx)
		d.read.Store(d.err == nil)
	})
	value, _ := d.value.(T)
	return value, d.err
}
