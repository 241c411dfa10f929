package monitor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/survey"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// pathOverhead is how many bytes a path takes in the servers' transaction that closes a session,
// beside its text.
const pathOverhead = 4

// lockScanner judges locks, elections and claims.
type lockScanner struct {
	settings settings
	holders  map[string]knownHold // by the holder's node
}

// knownHold is when scans have seen a node hold.
type knownHold struct {
	since time.Time // the first scan
	seen  time.Time // the latest one; zero if a former leader has recorded the hold
}

// rememberUnread is how long a hold in an area that scans cannot read is remembered.
const rememberUnread = time.Hour

// resumeHold counts the hold of a finding that a former leader has recorded from the finding's
// Since. It ignores other findings.
func (w *lockScanner) resumeHold(f Finding) {
	if f.Problem == ProblemHold {
		w.holders[f.Node] = knownHold{since: f.Since}
	}
}

// rememberHolds adds to present the holds that a scan may have missed: they are in an area that it
// has not read. It forgets them after a time, since they may have ended.
func (w *lockScanner) rememberHolds(l *scanResult, present map[string]knownHold) {
	for node, hold := range w.holders {
		if _, seen := present[node]; seen || !l.isUnread(survey.Locks, node) {
			continue
		}
		if hold.seen.IsZero() {
			hold.seen = l.at
		}
		if l.at.Sub(hold.seen) < rememberUnread {
			present[node] = hold
		}
	}
}

// judgeLocks finds the problems of locks. The consumers of a strict queue stand in the line of a
// lock in its directory, and do not count as waiters.
func (w *lockScanner) judgeLocks(l *scanResult) {
	isQueue := map[string]bool{}
	for _, path := range l.survey.QueuePaths {
		isQueue[path] = true
	}
	present, sessions := map[string]knownHold{}, map[framework.SessionID]int{}
	for _, r := range l.survey.Locks {
		w.countBytes(r, sessions)
		w.findFaults(l, r)
		parent, _ := znode.Split(r.Path)
		if r.Kind == locks.ElectionLock || r.Kind == locks.ClaimLock || isQueue[parent] {
			continue
		}
		w.findWaits(l, r, present)
	}
	w.rememberHolds(l, present)
	w.holders = present
	for session, bytes := range sessions {
		if bytes > w.settings.sessionBytes {
			l.addFinding(Finding{Problem: ProblemSession, Path: session.String()},
				"the paths of the session's nodes have %d bytes together: Lockstep refuses creates beyond "+
					"framework.Config.MaxEphemeralBytes (900,000 by default), because the servers stop working when "+
					"they close a session with too many (ZOOKEEPER-4306)", bytes)
		}
	}
	slices.SortFunc(l.waiting, func(a, b lockWaiters) int { return b.waiters - a.waiters })
}

// findDeadlocks finds the deadlocks that last, among the requests for locks and what they lead to.
func findDeadlocks(ctx context.Context, client *framework.Client, l *scanResult, root string) error {
	requested := l.survey.Requested
	if len(requested) == 0 || slices.Contains(l.without, ProblemDeadlock) {
		return nil
	}
	deadlocks, err := locks.DeadlocksAt(ctx, client, requested...)
	if err := l.addUnreadOf(ctx, survey.Locks, root, err); err != nil {
		return err
	}
	for _, d := range deadlocks {
		if !d.Lasting {
			continue
		}
		requests := make([]string, len(d.Cycle))
		for i, a := range d.Cycle {
			requests[i] = a.String()
		}
		l.addFinding(Finding{Problem: ProblemDeadlock, Path: d.Cycle[0].Path, Node: d.Cycle[0].Node,
			Since: d.Cycle[0].Since},
			"%d holders wait for each other, and only report it: %s", len(d.Cycle), strings.Join(requests, "; "))
	}
	return nil
}

// countBytes adds the bytes of a lock's paths to those of the sessions that own the nodes.
func (w *lockScanner) countBytes(r locks.Report, sessions map[framework.SessionID]int) {
	for _, entries := range [][]locks.Entry{r.Holders, r.Waiters, r.Others} {
		for _, e := range entries {
			if e.Session != 0 {
				sessions[e.Session] += (len(e.Node) + pathOverhead) * max(1, e.Permits)
			}
		}
	}
}

// findFaults finds mixed kinds, orphans and silent holders in a lock of any kind.
func (w *lockScanner) findFaults(l *scanResult, r locks.Report) {
	if r.Kind == locks.MixedLock {
		l.addFinding(Finding{Problem: ProblemMixed, Path: r.Path},
			"contenders of several kinds, which do not see each other: each kind has a holder")
	}
	for _, e := range slices.Concat(r.Holders, r.Waiters) {
		if e.Session == 0 {
			l.addFinding(Finding{Problem: ProblemOrphan, Path: r.Path, Node: e.Node, Since: e.Since},
				"%s is in the line and belongs to no session: the servers will not delete it", e.Node)
		}
	}
	for _, e := range r.Holders {
		if e.Revoked && l.at.Sub(e.RevokedAt) > w.settings.silentHolder {
			l.addFinding(Finding{Problem: ProblemSilent, Path: r.Path, Node: e.Node, Since: e.RevokedAt},
				"an operator has asked %s to release the lock, and it still holds", describeEntry(e))
		}
	}
}

// findWaits finds many waiters and long holds of one lock. It adds to present since when each
// holder holds.
func (w *lockScanner) findWaits(l *scanResult, r locks.Report, present map[string]knownHold) {
	waiters := len(r.Waiters)
	if waiters > 0 {
		l.waiting = append(l.waiting, lockWaiters{r.Path, waiters})
	}
	if waiters > w.settings.waiters {
		atLeast := ""
		if r.Truncated {
			atLeast = "at least "
		}
		l.addFinding(Finding{Problem: ProblemWaiters, Path: r.Path, Since: r.Waiters[0].Since}, "%s%d wait; %s",
			atLeast, waiters, describeHolders(r))
	}
	earliest := l.at
	var longestHolder locks.Entry
	for _, e := range r.Holders {
		since := l.at
		if hold, known := w.holders[e.Node]; known {
			since = hold.since
		}
		present[e.Node] = knownHold{since, l.at}
		if since.Before(earliest) {
			earliest, longestHolder = since, e
		}
	}
	if waiters > 0 && l.at.Sub(earliest) > w.settings.longHold {
		l.addFinding(Finding{Problem: ProblemHold, Path: r.Path, Node: longestHolder.Node, Since: earliest},
			"%s has held for at least %v, and %d wait", describeEntry(longestHolder),
			l.at.Sub(earliest).Round(time.Second), waiters)
	}
}

// describeHolders names the first holder and counts the others.
func describeHolders(r locks.Report) string {
	switch n := len(r.Holders); n {
	case 0:
		return "there is no holder"
	case 1:
		return describeEntry(r.Holders[0]) + " holds"
	default:
		return fmt.Sprintf("%s and %d more hold", describeEntry(r.Holders[0]), n-1)
	}
}

// describeEntry names a contender by its own description of its owner and host, or else by its
// node.
func describeEntry(e locks.Entry) string {
	switch {
	case e.Owner != "" && e.Host != "":
		return fmt.Sprintf("%s on %s (session %s)", e.Owner, e.Host, e.Session)
	case e.Owner != "":
		return fmt.Sprintf("%s (session %s)", e.Owner, e.Session)
	}
	return fmt.Sprintf("%s (session %s)", e.Node, e.Session)
}
