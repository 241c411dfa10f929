package election

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Status is an http.Handler for probes. It shows whether this process leads its elections, the
// leaders, and the state of the session. Run keeps it up to date; an HTTP request sends no request
// to ZooKeeper.
//
// While the session is not connected, "servers" lists the addresses that the client tries, each
// with its last error.
//
// The answer is JSON. Its code is 200 while there is a session, connected or suspended, and 503
// otherwise. With the query parameter leading=<path> it is 200 only while this process leads there,
// which routes requests to the leader. The answer shows the leaders' metadata: do not publish it if
// it is secret.
type Status struct {
	client    *framework.Client
	elections []*Election

	mu    sync.Mutex
	known []electionStatus
}

// electionStatus is the last leader or error of one election.
type electionStatus struct {
	leader *Candidate
	err    error
}

// NewStatus returns the status of a client and of some of its elections. Until Run has begun, no
// leader is known.
func NewStatus(client *framework.Client, elections ...*Election) *Status {
	return &Status{client: client, elections: elections, known: make([]electionStatus, len(elections))}
}

// Run observes the elections until ctx ends, or the client is closed.
func (s *Status) Run(ctx context.Context) {
	var all sync.WaitGroup
	for i, e := range s.elections {
		all.Go(func() { s.observeElection(ctx, i, e) })
	}
	all.Wait()
}

// observeElection observes one election, and begins again after an error, with pauses: many
// processes may get the same error at the same time.
func (s *Status) observeElection(ctx context.Context, i int, e *Election) {
	if e.err != nil { // there may be no client
		s.setKnown(i, electionStatus{err: e.err})
		return
	}
	pauses := recipe.NewBackoff(e.client)
	for {
		var failed error
		for leader, err := range e.Observe(ctx) {
			s.setKnown(i, electionStatus{leader, err})
			if failed = err; err == nil {
				pauses.Reset()
			}
		}
		if ctx.Err() != nil || errors.Is(failed, framework.ErrClosed) {
			return
		}
		if pauses.Pause(ctx) != nil {
			return
		}
	}
}

func (s *Status) setKnown(i int, known electionStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[i] = known
}

// ServeHTTP answers GET and HEAD.
func (s *Status) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	v := s.currentView()
	code := http.StatusOK
	if v.Session == noSession || r.URL.Query().Has("leading") && !v.leadsPath(r.URL.Query().Get("leading")) {
		code = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the requester may have gone
}

// statusView is the answer.
type statusView struct {
	Session   string         `json:"session"`
	Servers   []serverView   `json:"servers,omitempty"` // while the session is not connected
	Elections []electionView `json:"elections"`
}

type serverView struct {
	Server string `json:"server"`
	Error  string `json:"error,omitempty"` // "": it has not answered yet, or was used since
}

type electionView struct {
	Path    string      `json:"path"`
	ID      string      `json:"id"`
	Leading bool        `json:"leading"`
	Leader  *leaderView `json:"leader"` // null: none, or not known
	Error   string      `json:"error,omitempty"`
}

type leaderView struct {
	ID       string     `json:"id"`
	Term     int64      `json:"term"`
	Token    int64      `json:"token"`
	Since    *time.Time `json:"since,omitempty"`
	Metadata Metadata   `json:"metadata,omitempty"`
}

func (v statusView) leadsPath(path string) bool {
	for _, e := range v.Elections {
		if e.Path == path {
			return e.Leading
		}
	}
	return false
}

func (s *Status) currentView() statusView {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := statusView{Session: s.sessionState(), Elections: make([]electionView, len(s.elections))}
	if s.client != nil && v.Session != framework.Connected.String() {
		for _, server := range s.client.Status().Servers {
			view := serverView{Server: server.Server}
			if server.Err != nil {
				view.Error = server.Err.Error()
			}
			v.Servers = append(v.Servers, view)
		}
	}
	for i, e := range s.elections {
		v.Elections[i] = electionView{Path: e.path, ID: e.config.id, Leading: e.Term() != nil,
			Leader: s.known[i].leader.leaderView()}
		if err := errors.Join(e.err, s.known[i].err); err != nil {
			v.Elections[i].Error = err.Error()
		}
	}
	return v
}

func (c *Candidate) leaderView() *leaderView {
	if c == nil {
		return nil
	}
	v := &leaderView{ID: c.ID, Term: c.Number, Token: c.Token, Metadata: c.Metadata}
	if !c.Since.IsZero() {
		v.Since = &c.Since
	}
	return v
}

// noSession is what a status says instead of a session's state.
const noSession = "none"

// sessionState is the state of the client's session at this moment.
func (s *Status) sessionState() string {
	if s.client == nil {
		return noSession
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	session, err := s.client.Session(now) // does not wait
	if err != nil {
		return noSession
	}
	return session.State().String()
}
