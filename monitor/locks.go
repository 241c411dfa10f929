package monitor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// perPath is what the servers count for a path beside its bytes when they close a session.
const perPath = 4

// lockWatch looks at locks.
type lockWatch struct {
	client   *framework.Client
	root     string
	settings settings
	holders  map[string]time.Time // by node: since when it holds, as far as the looks have seen
}

// resume takes over what the leader before has seen of holds that are findings.
func (w *lockWatch) resume(f Finding) {
	if f.Problem == ProblemHold {
		w.holders[f.Node] = f.Since
	}
}

// look looks at all locks. queues are the paths of queues: the locks below them are their consumers' turns.
func (w *lockWatch) look(ctx context.Context, l *look, queues map[string]bool) error {
	present, sessions := map[string]time.Time{}, map[locks.SessionID]int{}
	incomplete := false
	for r, err := range locks.List(ctx, w.client, w.root) {
		if err != nil {
			if err := l.addUnread(ctx, areaLocks, w.root, err); err != nil {
				return err
			}
			incomplete = true
			continue
		}
		l.locks++
		w.countBytes(r, sessions)
		w.findFaults(l, r)
		parent, _ := znode.Split(r.Path)
		if r.Kind == locks.ElectionLock || r.Kind == locks.ClaimLock || queues[parent] {
			continue
		}
		w.findWaits(l, r, present)
	}
	if incomplete {
		kept := maps.Clone(w.holders)
		maps.Copy(kept, present)
		present = kept
	}
	w.holders = present
	for session, bytes := range sessions {
		if bytes > w.settings.sessionBytes {
			l.add(Finding{Problem: ProblemSession, Path: session.String()}, "the session has nodes with %d bytes of paths: its creates are refused from framework.Config.MaxEphemeralBytes on, 900,000 by default; the servers stop working when they delete too much at once (ZOOKEEPER-4306)", bytes)
		}
	}
	slices.SortFunc(l.waiting, func(a, b pathValue) int { return b.value - a.value })
	return nil
}

// countBytes adds up the paths of each session's nodes.
func (w *lockWatch) countBytes(r *locks.Report, sessions map[locks.SessionID]int) {
	for _, entries := range [][]locks.Entry{r.Holders, r.Waiters, r.Others} {
		for _, e := range entries {
			if e.Session != 0 {
				sessions[e.Session] += (len(e.Node) + perPath) * max(1, e.Permits)
			}
		}
	}
}

// findFaults finds what is wrong with a line of any kind.
func (w *lockWatch) findFaults(l *look, r *locks.Report) {
	if r.Kind == locks.MixedLock {
		l.add(Finding{Problem: ProblemMixed, Path: r.Path}, "contenders of several kinds, which do not see each other: each kind has a holder")
	}
	for _, e := range slices.Concat(r.Holders, r.Waiters) {
		if e.Session == 0 {
			l.add(Finding{Problem: ProblemOrphan, Path: r.Path, Node: e.Node, Since: e.Since}, "%s stands in the line and belongs to no session: it does not go by itself", e.Node)
		}
	}
	for _, e := range r.Holders {
		if e.Data == locks.RevokeMark {
			l.add(Finding{Problem: ProblemSilent, Path: r.Path, Node: e.Node}, "%s was asked to let go and still holds; its session is %s", e.Node, e.Session)
		}
	}
}

// findWaits finds many waiters and long holds.
func (w *lockWatch) findWaits(l *look, r *locks.Report, present map[string]time.Time) {
	waiters := len(r.Waiters)
	if waiters > 0 {
		l.waiting = append(l.waiting, pathValue{r.Path, waiters})
	}
	if waiters > w.settings.waiters {
		atLeast := ""
		if r.Truncated {
			atLeast = "at least "
		}
		l.add(Finding{Problem: ProblemWaiters, Path: r.Path, Since: r.Waiters[0].Since}, "%s%d wait; %s", atLeast, waiters, describeHolders(r))
	}
	longest := l.at
	var held locks.Entry
	for _, e := range r.Holders {
		since, known := w.holders[e.Node]
		if !known {
			since = l.at
		}
		present[e.Node] = since
		if since.Before(longest) {
			longest, held = since, e
		}
	}
	if waiters > 0 && l.at.Sub(longest) > w.settings.longHold {
		l.add(Finding{Problem: ProblemHold, Path: r.Path, Node: held.Node, Since: longest}, "%s holds for at least %v, and %d wait", describeEntry(held), l.at.Sub(longest).Round(time.Second), waiters)
	}
}

func describeHolders(r *locks.Report) string {
	switch n := len(r.Holders); n {
	case 0:
		return "none holds"
	case 1:
		return describeEntry(r.Holders[0]) + " holds"
	default:
		return fmt.Sprintf("%s and %d more hold", describeEntry(r.Holders[0]), n-1)
	}
}

// describeEntry names a contender by what it says of itself, else by its node.
func describeEntry(e locks.Entry) string {
	switch {
	case e.Owner != "" && e.Host != "":
		return fmt.Sprintf("%s on %s (session %s)", e.Owner, e.Host, e.Session)
	case e.Owner != "":
		return fmt.Sprintf("%s (session %s)", e.Owner, e.Session)
	}
	return fmt.Sprintf("%s (session %s)", e.Node, e.Session)
}
