package ui

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

const (
	maxWaiters = 2 // that are drawn one by one; if there are more, only the first
	maxChain   = 6
)

// chainLink is a holder in the chain of who waits for whom.
type chainLink struct {
	holder locks.Entry
	holds  string
	waits  string // the lock that he waits for, or ""
}

// chainOf follows from a lock's holder to the holder of the lock that this one waits for, and so
// on. cycle is where the chain comes back to, or -1.
func chainOf(s *snapshot, r locks.Report) (chain []chainLink, cycle int) {
	waitsFor := map[framework.SessionID]string{}
	for _, l := range s.Locks {
		if l.Kind == locks.ElectionLock {
			continue
		}
		for _, e := range l.Waiters {
			if e.Session != 0 && waitsFor[e.Session] == "" {
				waitsFor[e.Session] = l.Path
			}
		}
	}
	for at := r; len(at.Holders) > 0 && len(chain) < maxChain; {
		holder := at.Holders[0]
		next := waitsFor[holder.Session]
		chain = append(chain, chainLink{holder, at.Path, next})
		if next == "" {
			break
		}
		back := func(c chainLink) bool { return c.holds == next }
		if cycle := slices.IndexFunc(chain, back); cycle >= 0 {
			return chain, cycle
		}
		at = s.locksAt[next]
	}
	return chain, -1
}

// waitGraph draws the first waiters, the holder below them, and below him the chain of holders that
// he waits for. A chain that comes back to a holder is a deadlock.
func (u *UI) waitGraph(s *snapshot, r locks.Report) *drawing {
	if len(r.Holders) == 0 || len(r.Waiters) == 0 {
		return nil
	}
	chain, cycle := chainOf(s, r)
	var boxes []box
	var arrows []boxArrow
	var words []string
	above := slices.DeleteFunc(slices.Clone(r.Waiters), func(e locks.Entry) bool { // others are drawn below
		return slices.ContainsFunc(chain, func(c chainLink) bool { return c.holder.Session == e.Session })
	})
	rest := 0
	if len(above) > maxWaiters {
		rest = len(above) - 1
	}
	for _, e := range above[:len(above)-rest] {
		b := box{Name: short(owner(e), nameLength), Title: plain(owner(e)), Below: "waits", Class: "wait", Mark: wait}
		if e.Session != 0 {
			b.Href = "session?id=" + e.Session.String()
		}
		boxes = append(boxes, b)
		words = append(words, fmt.Sprintf("%s waits for %s.", owner(e), owner(chain[0].holder)))
	}
	if rest > 0 {
		boxes = append(boxes, box{Name: count(rest) + " more", Title: "more waiters", Below: "wait", Class: "wait",
			Mark: wait, Href: "#f-line"})
		words = append(words, count(rest)+" more wait.")
	}
	holder := len(boxes)
	for i := range boxes {
		arrows = append(arrows, boxArrow{From: i, To: holder, Class: "next"})
	}
	for i, c := range chain {
		class, mark := "", busy
		if cycle >= 0 && i >= cycle {
			class, mark = "bad", bad
		}
		holds := path.Base(c.holds)
		b := box{Layer: i + min(holder, 1), Name: short(owner(c.holder), nameLength),
			Below: short("holds "+holds, belowLength), Title: plain(owner(c.holder) + " holds " + c.holds),
			Class: class, Mark: mark}
		if i > 0 {
			b.Href = linkTo("lock", c.holds, u.root).Href
		}
		boxes = append(boxes, b)
		if c.waits == "" {
			continue
		}
		words = append(words, fmt.Sprintf("%s holds %s and waits for %s.", owner(c.holder), holds,
			path.Base(c.waits)))
		to := i + 1
		if to == len(chain) {
			to = cycle
		}
		if to >= 0 { // else the chain is too long to be drawn
			arrows = append(arrows, boxArrow{holder + i, holder + to, class, short(path.Base(c.waits), nameLength)})
		}
	}
	if cycle >= 0 {
		words = append(words, "This is a deadlock.")
	}
	return &drawing{plain(strings.Join(words, " ")), []picture{draw("waits", "", boxes, arrows)}}
}
