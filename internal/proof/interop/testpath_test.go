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
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// testPath is the path of one lock, and a client that reads its nodes.
type testPath struct {
	t            *testing.T
	ctx          context.Context
	path         string
	line         string // the directory where contenders wait
	holdersApart bool   // holders do not stand in line
	client       *framework.Client
	asking       *sync.WaitGroup
}

// newTestPath returns a new path. The end of the test cancels the remaining waiters.
func newTestPath(t *testing.T, r role) *testPath {
	t.Helper()
	c, _ := connect(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*deadline)
	s := &testPath{t: t, ctx: ctx, holdersApart: r.holdersApart, client: c, asking: &sync.WaitGroup{}}
	s.path = "/interop/" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.FormatInt(names.Add(1), 10)
	s.line = r.line(s.path)
	t.Cleanup(func() {
		cancel()
		s.asking.Wait()
	})
	if r.kazoo.Kind != "" {
		// a lock of kazoo's makes its directory once: it must stay when it is empty, which a
		// container does not
		require.NoError(t, c.MakeDirs(ctx, "/interop"))
		require.NoError(t, c.Create(ctx, s.path, nil, framework.Persistent))
	}
	return s
}

// node is a contender's node, as the servers have it.
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

// sync lets the client's server apply all earlier writes, also those that other servers have
// applied already.
func (s *testPath) sync() {
	s.t.Helper()
	syncWithOthers(s.t, s.ctx, s.client)
}

// contenderNodes reads the line after a sync, and returns it in the order of the numbers.
func (s *testPath) contenderNodes() []node {
	s.t.Helper()
	s.sync()
	children, _, err := s.client.Children(s.ctx, s.line)
	if !errors.Is(err, framework.ErrNoNode) {
		require.NoError(s.t, err)
	}
	var line []node
	for _, name := range children {
		path := znode.Join(s.line, name)
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

// awaitContenders waits until n contenders are in line, including the holder.
func (s *testPath) awaitContenders(n int) (line []node) {
	s.t.Helper()
	if s.holdersApart {
		n--
	}
	s.eventually(strconv.Itoa(n)+" in line", func() bool {
		line = s.contenderNodes()
		return len(line) == n
	})
	return line
}

// eventually polls until holds returns true.
func (s *testPath) eventually(what string, holds func() bool) {
	s.t.Helper()
	poll(s.t, func() string { return what + "; " + s.nodesBelow() }, holds)
}

// poll calls holds until it returns true, in the test's goroutine: so holds may fail the test at
// once. After the deadline poll fails the test and says what did not happen.
func poll(t *testing.T, what func() string, holds func() bool) {
	t.Helper()
	pause := time.NewTicker(5 * time.Millisecond)
	defer pause.Stop()
	for end := time.Now().Add(deadline); !holds(); <-pause.C {
		if time.Now().After(end) {
			require.Fail(t, "did not happen: "+what())
		}
	}
}

// awaitNoNodes waits until there is no node below the path.
func (s *testPath) awaitNoNodes() {
	s.t.Helper()
	s.eventually("nothing left behind", func() bool {
		s.sync()
		found, err := s.ephemerals(s.ctx, s.path)
		require.NoError(s.t, err)
		return len(found) == 0
	})
}

// ephemerals returns the ephemeral nodes of all sessions below a path.
func (s *testPath) ephemerals(ctx context.Context, path string) (found []string, err error) {
	names, st, err := s.client.Children(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if st.EphemeralOwner != 0 {
		return []string{path}, err
	}
	for _, name := range names {
		more, e := s.ephemerals(ctx, znode.Join(path, name))
		found, err = append(found, more...), errors.Join(err, e)
	}
	return found, err
}

// mustLock requires that a contender is granted.
func (s *testPath) mustLock(c contender) {
	s.t.Helper()
	granted, err := c.lock(s.ctx, forever)
	require.NoError(s.t, err)
	require.True(s.t, granted)
}

// mustNotLock requires that a contender is not granted within a time.
func (s *testPath) mustNotLock(c contender, wait time.Duration) {
	s.t.Helper()
	granted, err := c.lock(s.ctx, wait)
	require.NoError(s.t, err)
	require.False(s.t, granted, "granted while another contender holds")
}

// grant is the result of a wait.
type grant struct {
	granted bool
	err     error
}

// startWaiter starts a wait, and returns when the contender watches a node: then it has read the
// line and was not granted. The servers do not report watches of children, which Curator's first
// waiter for a permit has; it is known by its lease node.
func (s *testPath) startWaiter(c contender, wait time.Duration) <-chan grant {
	s.t.Helper()
	outcome := make(chan grant, 1)
	s.asking.Go(func() {
		granted, err := c.lock(s.ctx, wait)
		outcome <- grant{granted, err}
	})
	s.eventually("a waiter that watches", func() bool {
		return len(outcome) > 0 || s.watches(c.sessionID()) || s.holdersApart && s.hasSemaphoreLease(c.sessionID())
	})
	return outcome
}

// watches reports whether a session watches a node below the path.
func (s *testPath) watches(by session) bool {
	s.t.Helper()
	for _, server := range ensemble.Shared(s.t) {
		answer, err := ensemble.FourLetter(server, "wchp")
		if err != nil {
			continue // on a slow machine the answer takes too long: the caller asks again
		}
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

// hasSemaphoreLease reports whether a session has a lease node of a semaphore.
func (s *testPath) hasSemaphoreLease(by session) bool {
	s.t.Helper()
	leases, err := s.ephemerals(s.ctx, znode.Join(s.path, "leases"))
	require.NoError(s.t, err)
	return slices.ContainsFunc(leases, func(path string) bool {
		st, err := s.client.Exists(s.ctx, path)
		return err == nil && int64(st.EphemeralOwner) == by.id
	})
}

// requireStillWaiting requires that a waiter has no result yet.
func (s *testPath) requireStillWaiting(outcome <-chan grant) {
	s.t.Helper()
	select {
	case g := <-outcome:
		require.Fail(s.t, "a waiter has a result too early", "%+v", g)
	default:
	}
}

// awaitGrant returns the result of a wait.
func (s *testPath) awaitGrant(outcome <-chan grant) (granted bool) {
	s.t.Helper()
	timer := time.NewTimer(deadline)
	defer timer.Stop()
	select {
	case g := <-outcome:
		require.NoError(s.t, g.err)
		return g.granted
	case <-timer.C:
		require.Fail(s.t, "a waiter was not granted", s.nodesBelow())
		return false
	}
}

// nodesBelow returns the nodes below the path as text, for messages of failures.
func (s *testPath) nodesBelow() string {
	found, err := s.ephemerals(s.ctx, s.path)
	return fmt.Sprint("below the path are ", found, err)
}

func (s *testPath) release(c contender) {
	s.t.Helper()
	require.NoError(s.t, c.unlock(s.ctx))
}
