package locks

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/reportjson"
)

// LockKind is what Inspect finds at a path, by the layout of its nodes.
type LockKind string

// The kinds of locks.
const (
	// NoLock is a path without a lock: the lock has no holder or waiter, or the node is not a lock.
	NoLock LockKind = "none"
	// MutexLock is Mutex's layout, and Curator's InterProcessMutex's.
	MutexLock LockKind = "mutex"
	// ReadWriteLock is RWLock's layout.
	ReadWriteLock LockKind = "read-write"
	// ElectionLock is the layout of elections, Curator's LeaderLatch's.
	ElectionLock LockKind = "election"
	// SemaphoreLock is Semaphore's layout.
	SemaphoreLock LockKind = "semaphore"
	// ClaimLock is a single ephemeral node, such as a Claim's.
	ClaimLock LockKind = "claim"
	// KazooLock is the layout of kazoo's own locks.
	KazooLock LockKind = "kazoo"
	// MixedLock is a directory of several kinds, which do not see each other: the report lists the
	// holders of each. This package does not make such directories.
	MixedLock LockKind = "mixed"
)

// Report lists the holders and waiters of a lock. It may be outdated: the nodes were not read at
// one moment, and may be gone.
type Report struct {
	Path string   `json:"path"`
	Kind LockKind `json:"kind"`
	// Permits is the number of a semaphore's permits, or 0 without a record, such as in Curator's
	// semaphores.
	Permits int `json:"permits,omitempty"`
	// Holders and Waiters are in order. The first waiter of a Curator semaphore creates its lease's
	// node before the grant, so it is listed as a holder, too.
	Holders []Entry `json:"holders"`
	Waiters []Entry `json:"waiters"`
	// Others are the nodes in the lock's directories that are not part of a lock.
	Others []Entry `json:"others,omitempty"`
	// Count is the number of all these nodes, including those that were not read or were gone.
	Count int `json:"count"`
	// Truncated reports that there were more than 1,000 nodes, and only the first in line were
	// read.
	Truncated bool `json:"truncated,omitempty"`
}

// Entry is one holder or waiter.
type Entry struct {
	// Node is the path of its node, the first one if it has several.
	Node string `json:"node"`
	// Mode is "read" or "write" in a read-write lock or a kazoo lock.
	Mode string `json:"mode,omitempty"`
	// Owner, Host and PID are how the contender describes itself; the Owner of a candidate is its
	// id. Any client with write permission can forge them.
	Owner string `json:"owner,omitempty"`
	Host  string `json:"host,omitempty"`
	PID   int    `json:"pid,omitempty"`
	// Since is when the contender joined, by its own clock; for a semaphore's holder, when it was
	// granted. Without such a description, it is when the node was created, by the servers' clock.
	Since time.Time `json:"since"`
	// Session is the session that owns the node, 0 if the node is not ephemeral.
	Session framework.SessionID `json:"session"`
	// Token is the fencing token of its lease, or of the lease that it waits for.
	Token int64 `json:"token"`
	// Permits is how many permits of a semaphore it holds.
	Permits int `json:"permits,omitempty"`
	// Trace is the trace context of the call that joined.
	Trace map[string]string `json:"-"`
	// Revoked reports that another client has asked the owner to release; see Revoke.
	Revoked bool `json:"revoked,omitempty"`
	// RevokedAt is when it has asked, by the servers' clock: the time of the latest write of the
	// node's data, or the zero time if nobody has asked.
	RevokedAt time.Time `json:"revoked_at,omitzero"`
	// Foreign reports that the data does not describe an owner: another library wrote it, or
	// WithData.
	Foreign bool `json:"foreign,omitempty"`
	// Data is a foreign node's data, up to 4 KiB.
	Data string `json:"data,omitempty"`
	// Hidden reports that this client may not read the data.
	Hidden bool `json:"hidden,omitempty"`
}

// MarshalJSON adds "owner_base64" and "data_base64" for texts that are not UTF-8.
func (e Entry) MarshalJSON() ([]byte, error) {
	type fields Entry
	e.Since, e.RevokedAt = reportjson.Time(e.Since), reportjson.Time(e.RevokedAt)
	return json.Marshal(struct {
		fields
		OwnerBase64 []byte `json:"owner_base64,omitempty"`
		DataBase64  []byte `json:"data_base64,omitempty"`
	}{fields(e), reportjson.ExactBytes(e.Owner), reportjson.ExactBytes(e.Data)})
}

// maxExcerpt is how many bytes of a node's data a report repeats.
const maxExcerpt = 4 << 10

// entryOf describes a node by its data and its Stat.
func entryOf(node string, kind LockKind, data []byte, stat framework.Stat) Entry {
	e := Entry{Node: node, Session: stat.EphemeralOwner, Token: stat.Czxid, Since: stat.Ctime.UTC()}
	if kind == ElectionLock && len(data) > 0 && !bytes.Equal(data, revokeMark) {
		e.Owner = printableExcerpt(data)
		return e
	}
	if e.Revoked = isRevoked(data); e.Revoked {
		e.RevokedAt = stat.Mtime.UTC()
	}
	o, ours := parseOwner(data)
	if !ours {
		e.Foreign, e.Data = true, printableExcerpt(data)
		return e
	}
	e.Owner, e.Host, e.PID, e.Trace = printableExcerpt([]byte(o.Identity)), printableExcerpt([]byte(o.Host)),
		o.PID, o.Trace
	if !o.Since.IsZero() {
		e.Since = o.Since
	}
	return e
}

// printableExcerpt is the beginning of data that may be long, and may not be text.
func printableExcerpt(data []byte) string {
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

// addKind records that a kind of lock was found.
func (r *Report) addKind(kind LockKind) {
	switch r.Kind {
	case NoLock, kind:
		r.Kind = kind
	default:
		r.Kind = MixedLock
	}
}
