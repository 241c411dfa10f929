package election

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// Election is an election at a path of its own. Several may be made for one path, and each may be
// used by many goroutines at once; each campaign is a candidate.
type Election struct {
	client *framework.Client
	path   string
	err    error // of the arguments; every call returns it

	config  electionConfig
	line    *waitline.Line
	waiting *waitingGroup // how waiting candidates describe themselves
	key     any           // finds a term's place in its contexts
	waits   *waitline.Telemetry
	tel     telemetry
	current atomic.Pointer[Term] // the latest term of this value, or nil
}

// The nodes beside the line. They are not in its directory, since Apache Curator takes all children
// there for contenders.
const (
	termSuffix    = "~term"
	waitingSuffix = "~waiting"
)

// New returns an election at path. It creates no nodes. Validate says what is wrong with the
// arguments.
func New(client *framework.Client, path string, opts ...Option) *Election {
	e := &Election{client: client, path: path}
	if e.err = recipe.CheckClientAndPath(client, path, "an election"); e.err != nil {
		return e
	}
	e.config, e.err = configOf(opts)
	if e.config.id == "" {
		e.config.id = client.Config().Identity
	}
	if h := e.config.health; h != nil {
		h.log, h.path = client.Logger(), path
	}
	e.line = waitline.New(path, waitline.Filter{Kind: e.config.names}, nil)
	e.waiting = &waitingGroup{client: client, path: path + waitingSuffix, logged: map[string]bool{}}
	e.key = waitline.HeldKey(client, path)
	e.waits = waitline.NewTelemetry(client, path, "election")
	e.tel = newTelemetry(client, path)
	return e
}

func (e *Election) termPath() string { return e.path + termSuffix }

// Validate returns what is wrong with the arguments of New, as every call does, or nil. It sends no
// request.
func (e *Election) Validate() error { return e.err }

// Path is the election's directory.
func (e *Election) Path() string { return e.path }

// ID is the id of this election's candidates; see WithID.
func (e *Election) ID() string { return e.config.id }

// Term is the term in which a candidate of this value leads, or nil. It sends no request.
func (e *Election) Term() *Term {
	if t := e.current.Load(); t != nil && t.Err() == nil {
		return t
	}
	return nil
}

// Candidate is one candidate of an election.
type Candidate struct {
	// ID is the candidate's id: the data of its node.
	ID string `json:"id"`
	// Token is the fencing token of its term, or of the term that it waits for.
	Token int64 `json:"token"`
	// Node is the path of its node.
	Node string `json:"node"`
	// Session is the number of its session.
	Session framework.SessionID `json:"session"`
	// Number counts the election's terms. It is 0 for waiting candidates, for a leader that has not
	// recorded its term yet, and for Java leaders.
	Number int64 `json:"term,omitempty"`
	// Since is when the term began, by the leader's clock. It is zero while Number is 0.
	Since time.Time `json:"since,omitzero"`
	// Metadata is how the candidate describes itself; see WithMetadata.
	Metadata map[string]string `json:"metadata,omitempty"`
	// Priority is that of WithPriority for a waiting candidate, and 0 for a leader.
	Priority int `json:"priority,omitempty"`
	// Trace is the trace context of the campaign that a leader has won, in the form of its
	// propagators, or nil.
	Trace map[string]string `json:"-"`
}

// MarshalJSON returns the candidate with "id_base64" for an id that is not UTF-8.
func (c Candidate) MarshalJSON() ([]byte, error) {
	type fields Candidate
	c.Since = reportjson.Time(c.Since)
	return json.Marshal(struct {
		fields
		IDBase64 []byte `json:"id_base64,omitempty"`
	}{fields(c), reportjson.ExactBytes(c.ID)})
}

// Leader returns the leader, in the view of the connected server, which may lag behind the others.
// Its error wraps ErrNoLeader while no candidate leads.
func (e *Election) Leader(ctx context.Context) (Candidate, error) {
	c, err := e.readLeader(ctx)
	return c, failure.Wrap("leader", e.path, err)
}

func (e *Election) readLeader(ctx context.Context) (Candidate, error) {
	if e.err != nil {
		return Candidate{}, e.err
	}
	names, _, err := e.client.Children(ctx, e.path)
	if errors.Is(err, framework.ErrNoNode) {
		return Candidate{}, ErrNoLeader
	}
	if err != nil {
		return Candidate{}, err
	}
	first, err := e.line.First(ctx, e.client, names)
	switch {
	case err != nil:
		return Candidate{}, err
	case first == nil:
		return Candidate{}, ErrNoLeader
	}
	return e.withTermRecord(ctx, candidateOf(*first))
}

// Candidates lists the candidates in the order of the line: the leader is the first. A missing
// directory is an empty list. The list is the view of the connected server, and its nodes were not
// read at one moment. Of candidates with one session and one id, Metadata and Priority may be each
// other's. A waiting candidate is listed without them if its node below <path>~waiting cannot be
// read; Candidates logs that once for each node.
func (e *Election) Candidates(ctx context.Context) ([]Candidate, error) {
	all, err := e.listCandidates(ctx)
	return all, failure.Wrap("candidates", e.path, err)
}

func (e *Election) listCandidates(ctx context.Context) ([]Candidate, error) {
	if e.err != nil {
		return nil, e.err
	}
	line, err := e.line.List(ctx, e.client)
	if err != nil || len(line) == 0 {
		return nil, err
	}
	waiting, err := e.waiting.listWaiting(ctx)
	if err != nil {
		return nil, err
	}
	first, err := e.withTermRecord(ctx, candidateOf(line[0]))
	if err != nil {
		return nil, err
	}
	all := []Candidate{first}
	for _, entry := range line[1:] {
		c := candidateOf(entry)
		waiting = c.addWaitingRecord(waiting)
		all = append(all, c)
	}
	return all, nil
}

// withTermRecord adds the stored record of the term to the first candidate in line.
func (e *Election) withTermRecord(ctx context.Context, c Candidate) (Candidate, error) {
	r, err := readTerm(ctx, e.client, e.termPath())
	if err != nil {
		return Candidate{}, err
	}
	c.addTermRecord(r.termRecord)
	return c, nil
}

func candidateOf(c waitline.Entry) Candidate {
	return Candidate{ID: string(c.Data), Token: c.Token, Node: c.Node, Session: c.Session}
}

// addTermRecord adds the number, the time, the metadata and the trace of a term's record if the
// record belongs to this candidate. It reports whether it does.
func (c *Candidate) addTermRecord(r termRecord) bool {
	if r.Token != c.Token || r.Number == 0 {
		return false
	}
	c.Number, c.Since, c.Metadata, c.Trace = r.Number, r.Since, maps.Clone(r.Metadata), r.Trace
	return true
}

// addWaitingRecord takes the candidate's description from those of the waiting candidates, and
// returns the rest.
func (c *Candidate) addWaitingRecord(waiting []waitingCandidate) (rest []waitingCandidate) {
	for i, m := range waiting {
		if m.session == c.Session && m.id == c.ID {
			c.Metadata, c.Priority = m.metadata, priorityOf(m.node)
			return append(waiting[:i:i], waiting[i+1:]...)
		}
	}
	return waiting
}
