package locks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
)

// MaxEntries is how many nodes Inspect reads of one lock, one after the other.
const MaxEntries = 1000

// MaxChildren is how many children a directory may have to be listed: a list is one answer, and all of it
// is held in memory.
const MaxChildren = 250_000

// Inspect tells who holds the lock at path and who waits for it, whatever kind it is and whoever made it:
// what Curator and kazoo write is shown as it is. It takes part in nothing and leaves no watch.
//
// A path that does not exist, or is no lock, has a report of kind NoLock. Nodes that vanish meanwhile are
// left out. The connected server answers, which may be a little behind the others. The error wraps
// framework.ErrTooLarge if a directory has more than MaxChildren children, framework.ErrNoAuth or
// framework.ErrInvalidPath, or is that of ctx.
func Inspect(ctx context.Context, client *framework.Client, path string) (*Report, error) {
	if client == nil {
		return nil, errors.New("inspect: the client is nil")
	}
	i := newInspection(client, path)
	err := i.look(ctx)
	if err == nil {
		err = i.readOthers(ctx)
	}
	if err != nil {
		return nil, framework.Wrap("inspect", path, err)
	}
	return i.report, nil
}

// inspection is one look at one path.
type inspection struct {
	client *framework.Client
	path   string
	report *Report
	left   int      // nodes that may still be read
	below  []string // children that are no part of the lock
	others []string // what else is no part of it, in a semaphore's directories
}

func newInspection(client *framework.Client, path string) *inspection {
	// Lists are never null in JSON.
	r := &Report{Path: path, Kind: NoLock, Holders: []Entry{}, Waiters: []Entry{}}
	return &inspection{client: client, path: path, report: r, left: MaxEntries}
}

// look finds out what lies at the path and reads the contenders.
func (i *inspection) look(ctx context.Context) error {
	st, err := i.client.Exists(ctx, i.path)
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return nil
	case err != nil:
		return err
	case st.EphemeralOwner != 0 && st.NumChildren == 0:
		if _, name := framework.Split(i.path); strings.HasPrefix(name, framework.ProtectedPrefix) {
			return nil // one of several, such as a member: a claim's name is its own
		}
		return i.claim(ctx)
	}
	names, err := i.children(ctx, i.path, st)
	if err != nil {
		return err
	}
	l := sortOut(names)
	i.beside(l.others)
	if err := i.semaphore(ctx, l); err != nil {
		return err
	}
	return i.lines(ctx, l)
}

// beside notes children that are no part of the lock.
func (i *inspection) beside(names []string) {
	for _, name := range names {
		i.below = append(i.below, framework.Join(i.path, name))
	}
	slices.Sort(i.below)
}

// list lists a directory; a missing one is empty.
func (i *inspection) list(ctx context.Context, dir string) ([]string, error) {
	st, err := i.client.Exists(ctx, dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return i.children(ctx, dir, st)
}

// children lists a directory whose Stat is known, unless there are too many.
func (i *inspection) children(ctx context.Context, dir string, st framework.Stat) ([]string, error) {
	if st.NumChildren == 0 {
		return nil, nil
	}
	if st.NumChildren > MaxChildren {
		return nil, framework.Wrap("list", dir,
			fmt.Errorf("%w: %d children, at most %d are listed", framework.ErrTooLarge, st.NumChildren, MaxChildren))
	}
	names, _, err := i.client.Children(ctx, dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// claim reads a node that is a lock by itself.
func (i *inspection) claim(ctx context.Context) error {
	i.report.Count++
	e, err := i.read(ctx, i.path, ClaimLock)
	if err == nil && e != nil {
		i.report.found(ClaimLock)
		i.report.add(true, *e)
	}
	return err
}

// lines reads the lines in the directory itself.
func (i *inspection) lines(ctx context.Context, l layout) error {
	i.report.Count += l.size()
	for _, kind := range lineKinds {
		if len(l.lines[kind]) == 0 {
			continue
		}
		i.report.found(kind)
		if err := i.line(ctx, i.path, kind, l.lines[kind], new(head).admits); err != nil {
			return err
		}
	}
	return nil
}

// line reads contenders in their order. A node that is gone is in nobody's way.
func (i *inspection) line(ctx context.Context, dir string, kind LockKind, line []place, holds func(place) bool) error {
	for _, p := range line {
		e, err := i.read(ctx, framework.Join(dir, p.name), kind)
		if err != nil {
			return err
		}
		if e != nil {
			e.Mode = p.mode()
			i.report.add(holds(p), *e)
		}
	}
	return nil
}

// read reads one node; nil if it is gone, or one too many.
func (i *inspection) read(ctx context.Context, node string, kind LockKind) (*Entry, error) {
	if i.left == 0 {
		i.report.Truncated = true
		return nil, nil
	}
	i.left--
	data, st, err := i.client.Get(ctx, node)
	hidden := errors.Is(err, framework.ErrNoAuth)
	if hidden {
		st, err = i.client.Exists(ctx, node)
	}
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e := entryOf(node, kind, data, st)
	if hidden {
		e.Hidden, e.Foreign = true, false
	}
	return &e, nil
}

// readOthers reads what is no part of the lock, as far as there is room.
func (i *inspection) readOthers(ctx context.Context) error {
	others := slices.Concat(i.below, i.others)
	i.report.Count += len(others)
	for _, node := range others {
		e, err := i.read(ctx, node, NoLock)
		if err != nil {
			return err
		}
		if e != nil {
			i.report.Others = append(i.report.Others, *e)
		}
		if i.report.Truncated {
			return nil
		}
	}
	return nil
}

// permitsIn reads a semaphore's record as far as it can be understood; 0 if it cannot.
func permitsIn(record []byte) int {
	var p struct{ Permits int }
	if err := json.Unmarshal(record, &p); err != nil {
		return 0
	}
	return max(p.Permits, 0)
}
