package ui

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// linger is how long a hub keeps its watches when no page is open: a visitor who goes to another
// page closes one and opens one.
const linger = 2 * time.Second

// scanWhileOpen scans while a page is open: everything after each interval, or after a quarter of
// it if a watched directory has changed, and soon the locks whose directories have changed. After a
// scan of everything it does no other for as long as that has taken. A scan behind a change may
// come between the creation of a directory and that of its first node, so it is followed by one
// more.
func (h *hub) scanWhileOpen() {
	ctx, unwatch := context.WithCancel(h.life)
	defer unwatch()
	var earliest, due time.Time // of the next scan of everything
	var repeated []string       // what the next scan of locks reads once more
	for ctx.Err() == nil {
		h.mu.Lock()
		if h.pages == 0 {
			h.mu.Unlock()
			pause(ctx, linger, nil)
			h.mu.Lock()
		}
		if h.pages == 0 {
			h.looping = false
			h.mu.Unlock()
			return
		}
		select {
		case <-h.stirred:
		default:
		}
		former, stale := h.newest, maps.Clone(h.stale)
		changed, above, onlyLocks := h.changedLocks(former, stale)
		changed = append(changed, repeated...)
		onlyLocks = onlyLocks && former.failed == nil && len(changed)+len(above) > 0
		if len(stale) > 0 && !onlyLocks {
			due = earliest
		}
		directories := slices.Concat(slices.Collect(maps.Keys(stale)), repeated, h.directoriesToWatch())
		h.mu.Unlock()
		if wait := time.Until(due); wait > 0 && !onlyLocks {
			pause(ctx, wait, h.stirred)
			continue
		}
		h.watch(ctx, directories)
		h.mu.Lock()
		if busy := h.scanning; busy != nil { // a visitor's scan, which may have begun before the changes
			h.mu.Unlock()
			waitFor(ctx, busy)
			continue
		}
		for directory := range stale {
			delete(h.stale, directory)
		}
		var created []string
		scan, began := h.scan, time.Now()
		if onlyLocks {
			scan = func() (s *snapshot) {
				s, created = h.scanAgain(former, changed, above)
				return s
			}
		}
		done := h.beginScan(scan)
		h.mu.Unlock()
		if !waitFor(ctx, done) {
			return
		}
		switch took := time.Since(began); {
		case onlyLocks && h.latest() == former: // it has failed
			due, repeated = time.Time{}, nil
		case onlyLocks:
			repeated = created
			pause(ctx, max(h.interval/20, took), nil)
		default:
			repeated = nil
			earliest, due = time.Now().Add(max(h.interval/4, took)), time.Now().Add(max(h.interval, took))
			if len(stale) > 0 {
				due = earliest
			}
			pause(ctx, h.interval/20, nil)
		}
	}
}

func waitFor(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// maxStale is up to how many changed directories a scan of locks reads. Beyond that a scan of
// everything takes fewer requests.
const maxStale = 50

// changedLocks tells the directories that have changed apart: those of locks, also of new ones, and
// those with locks in them, each with the names that it had. ok is false if there are others, which
// a page is about, or too many. The caller holds mu.
func (h *hub) changedLocks(s *snapshot, stale map[string][]string) (of []string, above map[string][]string, ok bool) {
	hasLocks := map[string]bool{}
	for _, r := range s.locks {
		dir, _ := znode.Split(r.Path)
		hasLocks[dir] = true
	}
	above = map[string][]string{}
	for directory, names := range stale {
		parent, _ := znode.Split(directory)
		_, isLock := s.locksAt[directory]
		switch {
		case isLock:
			of = append(of, directory)
		case h.shown[directory] > 0:
			return nil, nil, false
		case hasLocks[directory]:
			above[directory] = names
		case hasLocks[parent]:
			of = append(of, directory)
		default:
			return nil, nil, false
		}
	}
	return of, above, len(stale) <= maxStale
}

// pause waits until the time is over, early tells something, or ctx ends. It reports whether early
// has told something.
func pause(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-early:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

const (
	maxWatches = 1200        // directories that a hub watches
	newWatches = 200         // of them before one scan
	watchTime  = time.Second // setting these may take
)

// directoriesToWatch are what open pages are about, and of the directories of locks and elections
// and the directories above them the first ones as lists show them. The caller holds mu.
func (h *hub) directoriesToWatch() []string {
	s := h.newest
	if s.failed != nil {
		return nil
	}
	all := slices.Sorted(maps.Keys(h.shown))
	locked := slices.DeleteFunc(slices.Clone(s.locks), func(r locks.Report) bool { return r.Kind == locks.ClaimLock })
	slices.SortStableFunc(locked, func(a, b locks.Report) int {
		return cmp.Or(len(s.problemsAt[b.Path])-len(s.problemsAt[a.Path]), len(b.Waiters)-len(a.Waiters))
	})
	for _, r := range locked[:min(len(locked), maxWatches)] {
		above, _ := znode.Split(r.Path)
		all = append(all, r.Path, above)
	}
	return all
}

// watch watches directories for changes of their children, up to newWatches that were not watched
// before, and up to maxWatches in all. It returns when the watches are set. A watch lasts until its
// directory changes, so a cluster in which nothing changes is asked for none.
func (h *hub) watch(ctx context.Context, directories []string) {
	if len(directories) == 0 {
		return
	}
	setting, cancel := context.WithTimeout(ctx, watchTime)
	defer cancel()
	session, err := h.client.Session(setting)
	if err != nil {
		return
	}
	var set sync.WaitGroup
	defer set.Wait()
	left := newWatches
	for _, directory := range directories {
		if left == 0 {
			return
		}
		h.mu.Lock()
		skip := h.watched[directory] || len(h.watched) == maxWatches
		if !skip {
			h.watched[directory] = true
		}
		h.mu.Unlock()
		if skip {
			continue
		}
		left--
		set.Add(1)
		h.tasks.Go(func() {
			names, _, watch, err := session.WatchChildren(setting, directory)
			set.Done()
			changed := false
			if err == nil {
				select {
				case <-watch.C():
					changed = true
				case <-session.Done(): // the next one watches
				case <-ctx.Done():
					watch.Stop()
				}
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.watched, directory)
			if !changed {
				return
			}
			h.stale[directory] = names
			select {
			case h.stirred <- struct{}{}:
			default: // the loop knows it already
			}
		})
	}
}
