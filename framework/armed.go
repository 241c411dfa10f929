package framework

import "sync"

// armed is what go-zookeeper keeps channels for, and so sets again by itself on a new connection. It is
// never too small, but may be too large for a while when an event and an answer come at once.
type armed struct {
	mu  sync.Mutex
	set map[watchKey]int
}

func newArmed() *armed { return &armed{set: map[watchKey]int{}} }

// asking is called before the library asks for a watch.
func (a *armed) asking(kind watchKind, full string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set[watchKey{kind, full}]++
}

// asked is called with the outcome.
func (a *armed) asked(kind watchKind, full string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := watchKey{kind, full}
	if ok { // an event of a former watch may have taken it out meanwhile
		a.set[key] = max(1, a.set[key])
		return
	}
	if a.set[key]--; a.set[key] <= 0 {
		delete(a.set, key)
	}
}

// fired takes out what an event ends.
func (a *armed) fired(kind EventKind, full string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range fires[kind] {
		delete(a.set, watchKey{k, full})
	}
}

// any tells whether there is anything to set again.
func (a *armed) any() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.set) > 0
}
