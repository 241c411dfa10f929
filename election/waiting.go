package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// waitingGroup has a node for each candidate that waits, or asks for a transfer, with the
// candidate's id and metadata:
//
//	<path>/_c_<uuid>-<name>    ephemeral; data: JSON {"v":1,"id","metadata"}
type waitingGroup struct {
	client *framework.Client
	path   string

	mu     sync.Mutex
	logged map[string]bool // names of nodes that could not be read, and that still existed at the last list
}

// waitingCandidate is one candidate of a waiting group.
type waitingCandidate struct {
	id       string
	metadata map[string]string
	node     string
	session  framework.SessionID
	order    int64 // of joining
}

// waitingName is the end of the name of a waiting candidate's node: its priority. So the leader
// needs only a list to find preferred candidates.
func waitingName(priority int) string { return "p" + strconv.Itoa(priority) }

// priorityOf reads the name of a waiting candidate's node; 0 for other names.
func priorityOf(name string) int {
	_, digits, ok := cutAtLast(name, "-p")
	if !ok {
		return 0
	}
	p, err := strconv.Atoi(digits)
	if err != nil || p < 0 || p > MaxPriority {
		return 0
	}
	return p
}

// requestName is the end of the name of a request's node.
const requestName = "transfer"

func isRequest(name string) bool { return strings.HasSuffix(name, "-"+requestName) }

// cutAtLast is strings.Cut, but around the last instance of sep.
func cutAtLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// listWaiting lists the candidates in the order of joining, in the view of the connected server.
func (g *waitingGroup) listWaiting(ctx context.Context) ([]waitingCandidate, error) {
	names, _, err := g.client.Children(ctx, g.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	g.forgetLoggedExcept(names)
	var all []waitingCandidate
	for _, name := range names {
		one, _, err := g.readRecord(ctx, g.client, name)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			continue
		case g.skipsUnreadable(name, err):
			continue
		case err != nil:
			return nil, err
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b waitingCandidate) int { return cmp.Compare(a.order, b.order) })
	return all, nil
}

// skipsUnreadable reports whether an error of readRecord concerns one node alone, so that the
// reader skips the node and goes on with the others: this client may not read the node, or a newer
// release or another program has written it. It logs a warning, once for each node.
func (g *waitingGroup) skipsUnreadable(name string, err error) bool {
	if !errors.Is(err, framework.ErrNoAuth) && !errors.Is(err, framework.ErrNewer) &&
		!errors.Is(err, framework.ErrBadRecord) {
		return false
	}
	g.mu.Lock()
	known := g.logged[name]
	g.logged[name] = true
	g.mu.Unlock()
	if known {
		return true
	}
	g.client.Logger().Warn("the node of a waiting candidate or of a request cannot be read and is skipped", "node",
		znode.Join(g.path, name), "error", err)
	return true
}

// forgetLoggedExcept forgets which nodes were logged, except for those with these names.
func (g *waitingGroup) forgetLoggedExcept(names []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	kept := map[string]bool{}
	for _, name := range names {
		if g.logged[name] {
			kept[name] = true
		}
	}
	g.logged = kept
}

// nodeReader reads nodes: it is a client or a session.
type nodeReader interface {
	Get(ctx context.Context, path string) ([]byte, framework.Stat, error)
}

// readRecord reads one candidate's node. The node of another program has no record; its name serves
// as the id.
func (g *waitingGroup) readRecord(ctx context.Context, from nodeReader,
	name string) (waitingCandidate, waitingRecord, error) {
	node := znode.Join(g.path, name)
	data, stat, err := from.Get(ctx, node)
	if err != nil {
		return waitingCandidate{}, waitingRecord{}, err
	}
	r, ours, err := decodeWaiting(data)
	if err != nil {
		return waitingCandidate{}, waitingRecord{}, fmt.Errorf("%s: %w", node, err)
	}
	if !ours {
		r = waitingRecord{ID: name}
	}
	return waitingCandidate{r.ID, r.Metadata, node, stat.EphemeralOwner, stat.Czxid}, r, nil
}

// waitingPresence keeps a candidate's node in the waiting group, on session after session, until
// leave is called or the client is closed.
type waitingPresence struct {
	group *waitingGroup
	name  string
	data  []byte

	leave  context.CancelFunc
	listed bool          // the node was created at least once
	gone   chan struct{} // closed when it has ended
	err    error         // once gone is closed: why it has ended, or nil after leave
}

// startPresence begins a presence in the background. name is the end of its node's name.
func (g *waitingGroup) startPresence(ctx context.Context, name string, r waitingRecord) (*waitingPresence, error) {
	data, err := r.encode()
	if err != nil {
		return nil, err
	}
	m := &waitingPresence{group: g, name: name, data: data, gone: make(chan struct{})}
	ctx, m.leave = context.WithCancel(context.WithoutCancel(ctx))
	go m.keepListed(ctx)
	return m, nil
}

// leaveAndWait ends the presence and waits until its node is gone, or ctx ends. After that the
// deletion goes on in the background.
func (m *waitingPresence) leaveAndWait(ctx context.Context) {
	m.leave()
	select {
	case <-m.gone:
	case <-ctx.Done():
	}
}

// keepListed keeps the node there, on session after session, until ctx ends or the client is
// closed. When the servers refuse the node, a candidate tries again after pauses. A request gives
// up if the first create is refused.
func (m *waitingPresence) keepListed(ctx context.Context) {
	defer close(m.gone)
	log, refused := m.group.client.Logger(), false
	err := recipe.OnSession(ctx, m.group.client, func(s *framework.Session) error { return m.stayOnSession(ctx, s) },
		func(err error) bool {
			switch {
			case errors.Is(err, framework.ErrClosed), errors.Is(err, framework.ErrAuthFailed), !m.listed &&
				m.name == requestName:
				return false
			case errors.Is(err, framework.ErrNodeGone):
				refused = false
				log.Warn("the node of a waiting candidate was removed and is created again", "path",
					m.group.path, "error", err)
			case !refused:
				refused = true
				log.Warn("a waiting candidate cannot show its metadata and priority to others, and tries again", "path",
					m.group.path, "error", err)
			}
			return true
		})
	if ctx.Err() == nil {
		m.err = err // RequestTransfer returns it
	}
}

// stayOnSession is the presence on one session. It ends with ctx, the session, or the node.
func (m *waitingPresence) stayOnSession(ctx context.Context, s *framework.Session) error {
	created, err := primitives.Of(s).CreateProtected(ctx, primitives.ProtectedCreate{
		Dir: m.group.path, Name: m.name, Data: m.data, Unnumbered: true,
	})
	if err != nil {
		return err
	}
	defer func() { <-primitives.Of(s).Discard(nil, created.Nodes[0].Path).Done() }()
	m.listed = true
	return recipe.WatchUntilGone(ctx, s, created.Nodes[0], nil)
}
