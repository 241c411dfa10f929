package ui

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// graph is who waits for whom around a lock, as a drawing of columns: the waiters at the top,
// the holder of the lock below them, and below him the holders that he waits for.
type graph struct {
	Width, Height int
	Nodes         []graphNode
	Edges         []graphEdge
	Text          string // the drawing in words
}

type graphNode struct {
	X, Y        int
	Name, Below string
	Class       string // "", "bad", "wait"
}

type graphEdge struct {
	Path, Class, Marker string
	X, Y                int
	Label               string
}

const (
	nodeWidth  = 150
	nodeHeight = 44
	nodeGap    = 28
	levelGap   = 56
	maxWaiters = 2
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

// waitGraph draws the first waiters, the holder, and the chain of locks that the holder waits for.
// A chain that comes back to a holder is a deadlock.
func waitGraph(s *snapshot, r locks.Report) *graph {
	if len(r.Holders) == 0 || len(r.Waiters) == 0 {
		return nil
	}
	chain, cycle := chainOf(s, r)
	var shown []locks.Entry // waiters that are not drawn below
	for _, e := range r.Waiters {
		below := func(c chainLink) bool { return c.holder.Session == e.Session }
		if !slices.ContainsFunc(chain, below) && len(shown) < maxWaiters {
			shown = append(shown, e)
		}
	}
	rest := len(r.Waiters) - len(shown)
	if cycle >= 0 {
		rest--
	}
	columns := len(shown)
	if rest > 0 {
		columns++
	}
	g := &graph{Width: max(columns*(nodeWidth+nodeGap)-nodeGap, nodeWidth+180) + 2,
		Height: (len(chain)+1)*(nodeHeight+levelGap) - levelGap + 2}
	words := g.drawWaiters(shown, rest, g.Width/2-(columns*(nodeWidth+nodeGap)-nodeGap)/2, chain[0])
	words = append(words, g.drawChain(chain, cycle)...)
	g.Text = plain(strings.Join(words, " "))
	return g
}

// drawWaiters draws the waiters from the left, each with a line to the holder below.
func (g *graph) drawWaiters(shown []locks.Entry, rest, left int, holder chainLink) (words []string) {
	draw := func(x int, name, below, class string) {
		g.Nodes = append(g.Nodes, graphNode{x, 1, short(name), below, "wait"})
		from, to, y := x+nodeWidth/2, g.Width/2, nodeHeight+levelGap
		g.Edges = append(g.Edges, graphEdge{Path: fmt.Sprintf("M%d %dC%d %d %d %d %d %d", from, nodeHeight+1, from,
			nodeHeight+levelGap/2, to, y-levelGap/2, to, y-4), Class: class, Marker: "a-rest"})
	}
	for i, e := range shown {
		draw(left+i*(nodeWidth+nodeGap), owner(e), "waits", "")
		words = append(words, fmt.Sprintf("%s waits for %s.", owner(e), owner(holder.holder)))
	}
	if rest > 0 {
		draw(left+len(shown)*(nodeWidth+nodeGap), fmt.Sprintf("%d more", rest), "wait", "next")
		words = append(words, fmt.Sprintf("%d more wait.", rest))
	}
	return words
}

// drawChain draws the holders below each other.
func (g *graph) drawChain(chain []chainLink, cycle int) (words []string) {
	middle := g.Width / 2
	top := func(i int) int { return (i + 1) * (nodeHeight + levelGap) }
	for i, c := range chain {
		class, marker := "", "a-rest"
		if cycle >= 0 && i >= cycle {
			class, marker = "bad", "a-bad"
		}
		holds := path.Base(c.holds)
		g.Nodes = append(g.Nodes, graphNode{middle - nodeWidth/2, top(i), short(owner(c.holder)),
			short("holds " + holds), class})
		if c.waits == "" {
			continue
		}
		waits := path.Base(c.waits)
		words = append(words, fmt.Sprintf("%s holds %s and waits for %s.", owner(c.holder), holds, waits))
		e := graphEdge{Class: class, Marker: marker, Label: short(waits)}
		bottom, side := top(i)+nodeHeight, middle+nodeWidth/2
		switch {
		case i+1 < len(chain):
			e.Path = fmt.Sprintf("M%d %dV%d", middle, bottom, top(i+1)-4)
			e.X, e.Y = middle+8, bottom+levelGap/2
		case cycle == i: // it waits for what it holds
			e.Path = fmt.Sprintf("M%d %dC%d %d %d %d %d %d", side, top(i)+34, side+60, top(i)+60,
				side+60, top(i)-16, side+5, top(i)+10)
			e.X, e.Y = side+50, top(i)+24
		case cycle >= 0:
			from, to := top(i)+nodeHeight/2, top(cycle)+nodeHeight/2
			e.Path = fmt.Sprintf("M%d %dC%d %d %d %d %d %d", side, from, side+70, from, side+70, to, side+5, to)
			e.X, e.Y = side+58, (from+to)/2
		default:
			e.X, e.Y = middle+8, bottom+levelGap/2
		}
		g.Edges = append(g.Edges, e)
	}
	return words
}

// short cuts a name so that it fits into a box.
func short(name string) string {
	name = plain(name)
	runes := []rune(name)
	if len(runes) <= 20 {
		return name
	}
	return string(runes[:8]) + "…" + string(runes[len(runes)-10:])
}

// TextX, NameY and BelowY are where a node's texts stand.
func (n graphNode) TextX() int  { return n.X + nodeWidth/2 }
func (n graphNode) NameY() int  { return n.Y + 19 }
func (n graphNode) BelowY() int { return n.Y + 35 }
