package locks

import (
	"context"
	"errors"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
)

// The names below a semaphore's path.
const (
	locksPart   = "locks"
	leasesPart  = "leases"
	permitsPart = "permits"
)

var semaphoreParts = []string{locksPart, leasesPart, permitsPart}

// semaphore reads the semaphore at the path, if there is one. Servers delete its directories while they are
// empty, and any of the names may be somebody's lock: it is a semaphore if there is a lease, a record
// of permits, or both directories with nothing that contradicts. Else its parts are children as
// others are.
func (i *inspection) semaphore(ctx context.Context, l layout) error {
	leases, strange, err := i.leases(ctx, l)
	if err != nil {
		return err
	}
	permits, err := i.permits(ctx, l)
	if err != nil {
		return err
	}
	both := slices.Contains(l.parts, locksPart) && slices.Contains(l.parts, leasesPart)
	if len(leases) == 0 && permits == 0 && !(both && len(strange) == 0) {
		i.beside(l.parts)
		return nil
	}
	i.report.found(SemaphoreLock)
	i.report.Permits = permits
	i.others = strange
	i.report.Count += len(leases)
	if err := i.line(ctx, framework.Join(i.path, leasesPart), SemaphoreLock, leases, func(place) bool { return true }); err != nil {
		return err
	}
	i.bundle()
	return i.queue(ctx)
}

// leases lists the leases, and the other children of their directory.
func (i *inspection) leases(ctx context.Context, l layout) (leases []place, strange []string, err error) {
	if !slices.Contains(l.parts, leasesPart) {
		return nil, nil, nil
	}
	dir := framework.Join(i.path, leasesPart)
	names, err := i.list(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if p, ok := numbered(name, leaseName, MutexKind); ok {
			leases = append(leases, p)
		} else {
			strange = append(strange, framework.Join(dir, name))
		}
	}
	inOrder(leases)
	slices.Sort(strange)
	return leases, strange, nil
}

// permits reads the number of permits, 0 if there is none to be found.
func (i *inspection) permits(ctx context.Context, l layout) (int, error) {
	if !slices.Contains(l.parts, permitsPart) {
		return 0, nil
	}
	data, _, err := i.client.Get(ctx, framework.Join(i.path, permitsPart))
	if errors.Is(err, framework.ErrNoNode) || errors.Is(err, framework.ErrNoAuth) {
		return 0, nil
	}
	return permitsIn(data), err
}

// bundle makes one holder of permits that were granted together: by one transaction.
func (i *inspection) bundle() {
	var holders []Entry
	for _, e := range i.report.Holders {
		e.Permits = 1
		if last := len(holders) - 1; last >= 0 && holders[last].Token == e.Token {
			holders[last].Permits++
			continue
		}
		holders = append(holders, e)
	}
	i.report.Holders = append([]Entry{}, holders...)
}

// queue reads who waits for permits.
func (i *inspection) queue(ctx context.Context) error {
	dir := framework.Join(i.path, locksPart)
	names, err := i.list(ctx, dir)
	if err != nil {
		return err
	}
	l := sortOut(names)
	waiting := l.lines[MutexLock]
	for _, name := range names {
		if kind, _ := recognise(name); kind != MutexLock {
			i.others = append(i.others, framework.Join(dir, name))
		}
	}
	i.report.Count += len(waiting)
	return i.line(ctx, dir, SemaphoreLock, waiting, func(place) bool { return false })
}
