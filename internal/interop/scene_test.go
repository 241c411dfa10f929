package interop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/ensemble"
)

// testPath is one lock, seen from outside.
type testPath struct {
	t      *testing.T
	ctx    context.Context
	path   string
	line   string // the directory where contenders wait
	apart  bool   // holders do not stand in line
	client *framework.Client
	asking *sync.WaitGroup
}

// newTestPath makes a scene at a path of its own. Whoever still waits when the test ends is not left alone.
func newTestPath(t *testing.T, r role) *testPath {
	t.Helper()
	c, _ := connect(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*deadline)
	s := &testPath{t: t, ctx: ctx, apart: r.apart, client: c, asking: &sync.WaitGroup{}}
	s.path = "/interop/" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.FormatInt(names.Add(1), 10)
	s.line = r.line(s.path)
	t.Cleanup(func() {
		cancel()
		s.asking.Wait()
	})
	return s
}

// node is one contender's, as everybody can see it.
type node struct {
	path, data string
	seq        string
}

func paths(line []node) (all []string) {
	for _, n := range line {
		all = append(all, n.path)
	}
	return all
}

// contenderNodes reads the line in order. Names do not tell, numbers do.
func (s *testPath) contenderNodes() []node {
	s.t.Helper()
	children, _, err := s.client.Children(s.ctx, s.line)
	if !errors.Is(err, framework.ErrNoNode) {
		require.NoError(s.t, err)
	}
	var line []node
	for _, name := range children {
		path := framework.Join(s.line, name)
		data, _, err := s.client.Get(s.ctx, path)
		if errors.Is(err, framework.ErrNoNode) {
			continue
		}
		require.NoError(s.t, err)
		line = append(line, node{path, string(data), name[len(name)-10:]})
	}
	slices.SortFunc(line, func(a, b node) int { return cmp.Compare(a.seq, b.seq) })
	return line
}

// awaitContenders waits until n contenders stand in line, the holder among them.
func (s *testPath) awaitContenders(n int) (line []node) {
	s.t.Helper()
	if s.apart {
		n--
	}
	s.eventually(strconv.Itoa(n)+" in line", func() bool {
		line = s.contenderNodes()
		return len(line) == n
	})
	return line
}

// eventually polls what is awaited.
func (s *testPath) eventually(what string, holds func() bool) {
	s.t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(deadline); !holds(); <-poll.C {
		if time.Now().After(end) {
			require.Fail(s.t, "never seen: "+what, s.nodesBelow())
		}
	}
}

// awaitNoNodes waits until nobody has anything below the path.
func (s *testPath) awaitNoNodes() {
	s.t.Helper()
	s.eventually("nothing left behind", func() bool {
		found, err := s.ephemerals(s.ctx, s.path)
		require.NoError(s.t, err)
		return len(found) == 0
	})
}

// ephemerals are all sessions' nodes below a path.
func (s *testPath) ephemerals(ctx context.Context, path string) (found []string, err error) {
	names, st, err := s.client.Children(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if st.EphemeralOwner != 0 {
		return []string{path}, err
	}
	for _, name := range names {
		more, e := s.ephemerals(ctx, framework.Join(path, name))
		found, err = append(found, more...), errors.Join(err, e)
	}
	return found, err
}

// mustLock makes a contender the holder.
func (s *testPath) mustLock(c contender) {
	s.t.Helper()
	granted, err := c.lock(s.ctx, forever)
	require.NoError(s.t, err)
	require.True(s.t, granted)
}

// mustNotLock makes sure that a contender is not granted within a time.
func (s *testPath) mustNotLock(c contender, wait time.Duration) {
	s.t.Helper()
	granted, err := c.lock(s.ctx, wait)
	require.NoError(s.t, err)
	require.False(s.t, granted, "granted beside a holder")
}

// grant is what a waiter is told.
type grant struct {
	granted bool
	err     error
}

// startWaiter makes a contender wait until wait is over, and returns when it does: when it watches something, it
// has looked and was not granted. Servers do not tell who watches children, as Curator does who is the
// first to wait for a permit: that one has made its lease already.
func (s *testPath) startWaiter(c contender, wait time.Duration) <-chan grant {
	s.t.Helper()
	told := make(chan grant, 1)
	s.asking.Go(func() {
		granted, err := c.lock(s.ctx, wait)
		told <- grant{granted, err}
	})
	s.eventually("a waiter that watches", func() bool {
		return len(told) > 0 || s.watches(c.sessionID()) || s.apart && s.hasSemaphoreLease(c.sessionID())
	})
	return told
}

// watches tells whether a session watches anything below the path.
func (s *testPath) watches(by session) bool {
	s.t.Helper()
	for _, server := range ensemble.Shared(s.t) {
		answer, err := ensemble.FourLetter(server, "wchp")
		require.NoError(s.t, err)
		below := false
		for line := range strings.Lines(answer) { // a path, then its watchers, indented
			watcher, indented := strings.CutPrefix(strings.TrimSpace(line), "0x")
			if !indented {
				below = strings.HasPrefix(line, s.path)
			} else if below && watcher == strconv.FormatUint(uint64(by.id), 16) {
				return true
			}
		}
	}
	return false
}

// hasSemaphoreLease tells whether a session has a semaphore's lease.
func (s *testPath) hasSemaphoreLease(by session) bool {
	s.t.Helper()
	leases, err := s.ephemerals(s.ctx, framework.Join(s.path, "leases"))
	require.NoError(s.t, err)
	return slices.ContainsFunc(leases, func(path string) bool {
		st, err := s.client.Exists(s.ctx, path)
		return err == nil && st.EphemeralOwner == by.id
	})
}

// requireStillWaiting makes sure that a waiter has been told nothing yet.
func (s *testPath) requireStillWaiting(told <-chan grant) {
	s.t.Helper()
	select {
	case g := <-told:
		require.Fail(s.t, "a waiter was told something too early", "%+v", g)
	default:
	}
}

// awaitGrant is what a waiter is told in the end.
func (s *testPath) awaitGrant(told <-chan grant) (granted bool) {
	s.t.Helper()
	timer := time.NewTimer(deadline)
	defer timer.Stop()
	select {
	case g := <-told:
		require.NoError(s.t, g.err)
		return g.granted
	case <-timer.C:
		require.Fail(s.t, "a waiter was forgotten", s.nodesBelow())
		return false
	}
}

// nodesBelow is what lies below the path, for failures.
func (s *testPath) nodesBelow() string {
	found, err := s.ephemerals(s.ctx, s.path)
	return fmt.Sprint("below the path are ", found, err)
}

func (s *testPath) release(c contender) {
	s.t.Helper()
	require.NoError(s.t, c.unlock(s.ctx))
}
