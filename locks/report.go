package locks

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/framework"
)

// LockKind is what lies at a path, by the layout that is found there.
type LockKind string

// The kinds of locks.
const (
	// NoLock is a path without any lock: nobody holds anything, or it is something else.
	NoLock LockKind = "none"
	// MutexLock is Mutex's layout, and Curator's InterProcessMutex's.
	MutexLock LockKind = "mutex"
	// ReadWriteLock is RWLock's layout.
	ReadWriteLock LockKind = "read-write"
	// ElectionLock is the layout of elections, Curator's LeaderLatch's.
	ElectionLock LockKind = "election"
	// SemaphoreLock is Semaphore's layout.
	SemaphoreLock LockKind = "semaphore"
	// ClaimLock is an ephemeral node, which is all there is of a Claim.
	ClaimLock LockKind = "claim"
	// KazooLock is the layout of kazoo's locks, which the kinds of this package cannot share.
	KazooLock LockKind = "kazoo"
	// MixedLock is a directory of several kinds, which do not see each other: the report's holders are the
	// holders of each. Nothing of this package makes it.
	MixedLock LockKind = "mixed"
)

// Report is who held a lock and who waited for it. It is a look, no guarantee: the nodes were read one
// after the other, and may be gone.
type Report struct {
	Path string   `json:"path"`
	Kind LockKind `json:"kind"`
	// Permits is how many a semaphore has. It is 0 where no record says so: Curator writes none.
	Permits int `json:"permits,omitempty"`
	// Holders and Waiters are in order. A Curator semaphore's first waiter has its lease's node before it
	// is granted, and is shown as a holder too.
	Holders []Entry `json:"holders"`
	Waiters []Entry `json:"waiters"`
	// Others are nodes in the lock's directories that no lock counts.
	Others []Entry `json:"others,omitempty"`
	// Count is the number of all these nodes, and of those that were not read or were gone.
	Count int `json:"count"`
	// Truncated tells that there were more than MaxEntries nodes: the first in line were read, the others
	// were not.
	Truncated bool `json:"truncated,omitempty"`
}

// Entry is one holder or waiter.
type Entry struct {
	// Node is the path of its node, the first one if it has several.
	Node string `json:"node"`
	// Mode is "read" or "write" in a lock that knows both.
	Mode string `json:"mode,omitempty"`
	// Owner, Host and PID are what it says of itself; Owner of a candidate is its id. What they say was
	// written by anybody who may write there.
	Owner string `json:"owner,omitempty"`
	Host  string `json:"host,omitempty"`
	PID   int    `json:"pid,omitempty"`
	// Since is when it asked, by its own clock, or of a semaphore's holder when it was granted. Where it
	// does not say so, it is when its node was created, by the servers' clock.
	Since time.Time `json:"since"`
	// Session is the session that the node lives with, 0 if it is not ephemeral.
	Session SessionID `json:"session"`
	// Token is the fencing token that its lease has or would have.
	Token int64 `json:"token"`
	// Permits is how many it holds of a semaphore.
	Permits int `json:"permits,omitempty"`
	// Foreign tells that the node's data is no Owner: another library wrote it, or WithData, or Revoke.
	Foreign bool `json:"foreign,omitempty"`
	// Data is a foreign node's data, cut after 4 KiB.
	Data string `json:"data,omitempty"`
	// Hidden tells that this client may not read the data.
	Hidden bool `json:"hidden,omitempty"`
}

// SessionID is a session's number. Its text is hexadecimal, as in ZooKeeper's own tools.
type SessionID int64

func (s SessionID) String() string { return fmt.Sprintf("%#x", uint64(s)) }

// MarshalText returns String: as a JSON number it would be rounded by many readers.
func (s SessionID) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText has written.
func (s *SessionID) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 0, 64)
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	*s = SessionID(n)
	return nil
}

// maxExcerpt is how many bytes of a node's data a report repeats.
const maxExcerpt = 4 << 10

// entryOf describes a node by its data and its Stat.
func entryOf(node string, kind LockKind, data []byte, st framework.Stat) Entry {
	e := Entry{Node: node, Session: SessionID(st.EphemeralOwner), Token: st.Czxid, Since: st.Ctime.UTC()}
	if kind == ElectionLock && len(data) > 0 {
		e.Owner = excerpt(data)
		return e
	}
	o, ours := ParseOwner(data)
	if !ours {
		e.Foreign, e.Data = true, excerpt(data)
		return e
	}
	e.Owner, e.Host, e.PID = excerpt([]byte(o.Owner)), excerpt([]byte(o.Host)), o.PID
	if !o.Since.IsZero() {
		e.Since = o.Since
	}
	return e
}

// excerpt is the beginning of a text that may be long, and no text at all.
func excerpt(data []byte) string {
	if len(data) <= maxExcerpt {
		return string(data)
	}
	cut := maxExcerpt
	for cut > maxExcerpt-utf8.UTFMax && !utf8.RuneStart(data[cut]) {
		cut--
	}
	return string(data[:cut])
}

// addEntry adds an entry to the holders or the waiters.
func (r *Report) addEntry(holds bool, e Entry) {
	if holds {
		r.Holders = append(r.Holders, e)
		return
	}
	r.Waiters = append(r.Waiters, e)
}

// addKind notes that a kind of lock was found.
func (r *Report) addKind(kind LockKind) {
	switch r.Kind {
	case NoLock, kind:
		r.Kind = kind
	default:
		r.Kind = MixedLock
	}
}

// List yields a report of every lock at root and below it, in the order of a walk: a directory before
// what lies below it, names in their order. It reads one node after the other; nothing is asked
// before the former report was taken. What makes a lock is not descended into; other nodes in its
// directory are, and are no part of its report.
//
// The servers do not tell what an ephemeral node is meant for: one by itself is reported as a claim.
//
// A directory that cannot be read, for want of permission or since it has more than MaxChildren children, is
// yielded as an error that names it (framework.ErrNoAuth, framework.ErrTooLarge), and the walk goes on.
// Any other error is the last thing yielded. What vanishes meanwhile is left out; what is made
// meanwhile may be.
func List(ctx context.Context, client *framework.Client, root string) iter.Seq2[*Report, error] {
	return func(yield func(*Report, error) bool) {
		if client == nil {
			yield(nil, errors.New("survey: the client is nil"))
			return
		}
		ahead := []string{root}
		for len(ahead) > 0 {
			last := len(ahead) - 1
			i := newInspection(client, ahead[last])
			ahead = ahead[:last]
			if !i.visitPath(ctx, yield) {
				return
			}
			slices.Reverse(i.below)
			ahead = append(ahead, i.below...)
		}
	}
}

// visitPath yields what there is at one path, and reports whether to go on.
func (i *inspection) visitPath(ctx context.Context, yield func(*Report, error) bool) bool {
	err := i.inspectPath(ctx)
	switch {
	case err == nil:
		return i.report.Kind == NoLock || yield(i.report, nil)
	case errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
		return yield(nil, framework.Wrap("survey", i.path, err))
	}
	yield(nil, framework.Wrap("survey", i.path, err))
	return false
}
