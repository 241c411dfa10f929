package barrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/internal/stored"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Kind is the kind of a barrier.
type Kind string

// The kinds that Inspect tells apart.
const (
	// KindGate is a Gate that is up. One that is down has no node.
	KindGate Kind = "gate"
	// KindDoubleBarrier is a DoubleBarrier.
	KindDoubleBarrier Kind = "double barrier"
	// KindLatch is a Latch.
	KindLatch Kind = "latch"
)

// kindTexts stay as they are when the texts that applications see change.
var kindTexts = stored.Texts[Kind]{KindGate: gateKind, KindDoubleBarrier: doubleKind, KindLatch: latchKind}

// Report describes a barrier as Inspect has read it. Times are the ensemble's.
type Report struct {
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	// Needed is the number of a double barrier's members or of a latch's counts.
	Needed int `json:"needed,omitempty"`
	// Missing is how many members have to enter until the next round begins, or how many callers
	// have to count until the latch opens. It is 0 while a round is inside. The servers do not know
	// the names of members and callers that have not come yet.
	Missing int `json:"missing"`
	// Rounds is the number of rounds that have begun.
	Rounds int64 `json:"rounds,omitempty"`
	// Inside are the members that are inside the present round, in order.
	Inside []Member `json:"inside,omitempty"`
	// Left is the number of members of the present round that have left or died.
	Left int `json:"left,omitempty"`
	// Waiting are the members that wait for the next round, in order.
	Waiting []Member `json:"waiting,omitempty"`
	// Counted are the ids of the callers that have counted a latch down, by name.
	Counted []string `json:"counted,omitempty"`
	// Open reports whether a latch has opened.
	Open bool `json:"open,omitempty"`
	// RaisedBy describes the process that has raised a gate. Session is 0 if the gate stays up
	// until it is lowered. A gate of Curator's has only a host address.
	RaisedBy Member `json:"raised_by,omitzero"`
}

// Member is a member of a double barrier, or the process that has raised a gate, as it describes
// itself.
type Member struct {
	Node  string `json:"node"`
	Owner string `json:"owner"`
	// Host and PID belong to the process that has raised a gate. A member of a double barrier does
	// not store them.
	Host string `json:"host,omitempty"`
	PID  int    `json:"pid,omitempty"`
	// Since is when the member's node or the gate was created.
	Since   time.Time           `json:"since,omitzero"`
	Session framework.SessionID `json:"session,omitempty"`
}

// MarshalJSON returns the member with "owner_base64" and "host_base64" for texts that are not
// UTF-8.
func (m Member) MarshalJSON() ([]byte, error) {
	type fields Member
	m.Since = reportjson.Time(m.Since)
	return json.Marshal(struct {
		fields
		OwnerBase64 []byte `json:"owner_base64,omitempty"`
		HostBase64  []byte `json:"host_base64,omitempty"`
	}{fields(m), reportjson.ExactBytes(m.Owner), reportjson.ExactBytes(m.Host)})
}

// maxReads bounds how often Inspect reads a double barrier whose phase changes during each read.
const maxReads = 10

// Inspect reports on the barrier of any kind at path. It only reads. Its report of a double barrier
// was true at one moment, unless ten rounds have begun or ended during the call. Waiters of gates
// and latches leave no nodes, so the report does not have them. Double barriers in Curator's layout
// are not recognized. The error wraps framework.ErrNoNode if the path has no node, as for a gate
// that is down, framework.ErrForeign if the node is no barrier, framework.ErrNewer, or
// framework.ErrNoAuth.
func Inspect(ctx context.Context, client *framework.Client, path string) (r Report, err error) {
	if err := recipe.CheckClientAndPath(client, path, "a barrier"); err != nil {
		return Report{}, failure.Wrap("inspect", path, err)
	}
	err = recipe.OnSession(ctx, client, func(s *framework.Session) error {
		if err := s.Sync(ctx, path); err != nil {
			return err
		}
		r, err = inspectOnSession(ctx, s, path)
		return err
	})
	return r, failure.Wrap("inspect", path, err)
}

func inspectOnSession(ctx context.Context, s *framework.Session, path string) (Report, error) {
	for reads := 1; ; reads++ {
		data, stat, err := s.Get(ctx, path)
		if err != nil {
			return Report{}, err
		}
		r, in, err := newReport(path, data, stat)
		if err != nil {
			return Report{}, err
		}
		switch r.Kind {
		case KindDoubleBarrier:
			err = r.addMembers(ctx, s, stat, in)
		case KindLatch:
			err = r.addCounts(ctx, s)
		}
		switch {
		case err == nil, errors.Is(err, recipe.ErrAgain) && reads == maxReads:
			return r, nil
		case !errors.Is(err, recipe.ErrAgain):
			return Report{}, err
		}
	}
}

// newReport decodes a barrier's own node. in is the directory of a double barrier's members.
func newReport(path string, data []byte, stat framework.Stat) (r Report, in string, err error) {
	r = Report{Path: path}
	if address, err := netip.ParseAddr(string(data)); err == nil && stat.EphemeralOwner == 0 && stat.NumChildren == 0 {
		r.Kind, r.RaisedBy = KindGate, newMember(path, nodeRecord{Owner: recipe.Owner{Host: address.String()}}, stat)
		return r, "", nil
	}
	var head nodeRecord
	if _, err := recipe.Decode(data, recordVersion, &head); errors.Is(err, framework.ErrBadRecord) {
		return Report{}, "", fmt.Errorf("%w: %s holds no barrier", errForeign, path)
	}
	switch head.Kind {
	case gateKind:
		if head, err = parseRecord(path, gateKind, data); err == nil && stat.NumChildren > 0 {
			err = fmt.Errorf("%w: %s has children", errForeign, path)
		}
		r.RaisedBy = newMember(path, head, stat)
	case doubleKind:
		head, err = parseBarrierRecord(path, data)
		r.Needed, r.Rounds, in = head.Size, barrierState{phase: stat.Version}.roundsBegun(), znode.Join(path, head.In)
	case latchKind:
		head, err = parseSizedRecord(path, latchKind, data, maxMembers)
		r.Needed = head.Size
	default:
		err = fmt.Errorf("%w: %s holds a %q and no barrier", errForeign, path, head.Kind)
	}
	r.Kind = kindTexts.ValueOf(head.Kind)
	return r, in, err
}

func newMember(node string, r nodeRecord, stat framework.Stat) Member {
	return Member{Node: node, Owner: r.Identity, Host: r.Host, PID: r.PID, Since: stat.Ctime.UTC(),
		Session: stat.EphemeralOwner}
}

// addMembers reads a double barrier's members. The error wraps recipe.ErrAgain if a phase began or
// ended meanwhile.
func (r *Report) addMembers(ctx context.Context, s *framework.Session, at framework.Stat, in string) error {
	round := znode.Join(r.Path, "round")
	data, _, err := s.Get(ctx, round)
	if err != nil {
		return r.orPartIsMissing(ctx, s, round, err)
	}
	last, err := parseRecord(round, roundKind, data)
	if err != nil {
		return err
	}
	names, _, err := s.Children(ctx, in)
	if err != nil {
		return r.orPartIsMissing(ctx, s, in, err)
	}
	slices.Sort(names)
	nodes := make([]string, len(names))
	for i, name := range names {
		nodes[i] = znode.Join(in, name)
	}
	read, err := s.GetAll(ctx, nodes...)
	if err != nil {
		return err
	}
	phase := barrierState{phase: at.Version}
	present := 0
	for i, node := range read {
		number, ok := parseMemberNumber(nodes[i])
		if !ok || errors.Is(node.Err, framework.ErrNoNode) {
			continue
		}
		if node.Err != nil {
			return node.Err
		}
		// a record that cannot be read only lacks the member's name
		described, _ := parseRecord(nodes[i], memberKind, node.Data)
		m := newMember(nodes[i], described, node.Stat)
		if phase.roundIsInside() && slices.Contains(last.Numbers, number) {
			present++
			r.Inside = append(r.Inside, m)
			continue
		}
		r.Waiting = append(r.Waiting, m)
	}
	if phase.roundIsInside() {
		r.Left = len(last.Numbers) - present
	} else {
		r.Missing = max(0, r.Needed-len(r.Waiting))
	}
	now, err := s.Exists(ctx, r.Path)
	if err == nil && (now.Czxid != at.Czxid || now.Version != at.Version ||
		phase.roundIsInside() && last.Phase != at.Version) {
		err = recipe.ErrAgain
	}
	return err
}

// addCounts reads a latch's counts.
func (r *Report) addCounts(ctx context.Context, s *framework.Session) error {
	by := znode.Join(r.Path, "by")
	names, _, err := s.Children(ctx, by)
	if err != nil {
		return r.orPartIsMissing(ctx, s, by, err)
	}
	slices.Sort(names)
	r.Counted, r.Missing = names, max(0, r.Needed-len(names))
	_, err = s.Exists(ctx, (&Latch{at: znode.Join(r.Path, "at"), size: r.Needed}).lastCountNode())
	if r.Open = err == nil; errors.Is(err, framework.ErrNoNode) {
		err = nil
	}
	return err
}

// orPartIsMissing returns the error for a part that could not be read: framework.ErrNoNode if the
// whole barrier was deleted, framework.ErrForeign if only the part is missing.
func (r *Report) orPartIsMissing(ctx context.Context, s *framework.Session, part string, err error) error {
	if !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	if _, err := s.Exists(ctx, r.Path); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s is missing beside %s", errForeign, part, r.Path)
}

// maxListed is how many nodes List looks at.
const maxListed = 20_000

// List yields reports on the gates that are up, the double barriers and the latches at and below
// root, which may be "/", each as Inspect does. It leaves out nodes that are no barriers, and
// barriers that were deleted meanwhile. It takes a persistent node without children that holds an
// IP address for a gate of Curator's, also if another program has made the node. It leaves out
// gates whose holders were asked to release them, since the nodes of claims look the same then.
//
// It yields an error for a node that the client may not read (framework.ErrNoAuth) and for a
// barrier that cannot be decoded (framework.ErrForeign, framework.ErrNewer), and goes on. Any other
// error is the last: it wraps framework.ErrTooLarge when more than 20,000 nodes lie below root.
// List leaves out the nodes beyond that number.
func List(ctx context.Context, client *framework.Client, root string) iter.Seq2[Report, error] {
	everything := func([]string) bool { return true }
	return func(yield func(Report, error) bool) {
		var paths []string
		var ended error // what has ended the search: it comes behind the nodes that were found before
		for found, err := range recipe.Find(ctx, client, []string{root}, maxListed,
			recipe.Layout{Recognize: everything}) {
			switch {
			case err == nil:
				paths = append(paths, found.Path)
			case !errors.Is(err, framework.ErrNoAuth):
				ended = err
			case !yield(Report{}, err):
				return
			}
		}
		for batch := range slices.Chunk(paths, maxListedAtOnce) {
			if !listBatch(ctx, client, batch, yield) {
				return
			}
		}
		if ended != nil {
			yield(Report{}, ended)
		}
	}
}

// maxListedAtOnce is how many nodes List reads together. A barrier's record is short, but other
// programs' nodes may be large.
const maxListedAtOnce = 100

// listBatch yields the reports on some paths. It returns false if List must end.
func listBatch(ctx context.Context, client *framework.Client, paths []string, yield func(Report, error) bool) bool {
	nodes, err := recipe.GetMany(ctx, client, paths)
	if err != nil {
		yield(Report{}, failure.Wrap("list barriers", paths[0], err))
		return false
	}
	for i, node := range nodes {
		if errors.Is(node.Err, framework.ErrTooLarge) { // no record of a barrier
			continue
		}
		if node.Err == nil {
			if _, _, err := newReport(paths[i], node.Data, node.Stat); errors.Is(err, errForeign) {
				continue
			}
		}
		r, err := Inspect(ctx, client, paths[i])
		switch {
		case errors.Is(err, framework.ErrNoNode):
			continue
		case errors.Is(err, errForeign) && node.Err != nil: // it was no barrier when it could be read
			continue
		}
		goesOn := err == nil || errors.Is(err, errForeign) || errors.Is(err, framework.ErrNewer) ||
			errors.Is(err, framework.ErrNoAuth)
		if !yield(r, err) || !goesOn {
			return false
		}
	}
	return true
}
