package ui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/internal/fourletter"
)

const (
	askInterval  = 5 * time.Second        // between two rounds
	maxAsked     = 30                     // servers
	waitForRoles = 200 * time.Millisecond // a scan waits for their answers
)

// readOnly is the mode of a server that has no quorum and serves old data.
const readOnly = "read-only"

// serverState is what a server of the ensemble has answered at the latest round.
type serverState struct {
	fourletter.Server
	Name  string
	Asked time.Time // zero if it was not asked, or has not answered yet
	Err   error
	Away  time.Time // since when rounds have seen that it serves no requests; zero if it does
}

// askServers asks all servers for their roles, unless it has a short time ago. The result is closed
// when all have answered or are away. Only the scan that is under way calls it.
func (h *hub) askServers(at time.Time) <-chan struct{} {
	done := make(chan struct{})
	if at.Sub(h.asked) < askInterval {
		close(done)
		return done
	}
	h.asked = at
	asker := fourletter.OfClient(h.client)
	var answers sync.WaitGroup
	h.mu.Lock()
	defer h.mu.Unlock()
	servers := h.client.Status().Servers
	round := make([]serverState, len(servers))
	for i, s := range servers {
		state := serverState{Name: s.Server}
		if known := slices.IndexFunc(h.servers, func(f serverState) bool { return f.Name == s.Server }); known >= 0 {
			state = h.servers[known]
		}
		round[i] = state
		if i >= maxAsked {
			continue
		}
		answers.Go(func() {
			answer, err := asker.Ask(h.life, state.Name)
			if h.life.Err() != nil {
				return
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			now := serverState{answer, state.Name, time.Now(), err, state.Away}
			switch {
			// one that hangs up has too many connections
			case err == nil && answer.Mode != readOnly || errors.Is(err, fourletter.ErrHungUp):
				now.Away = time.Time{}
			case now.Away.IsZero():
				now.Away = now.Asked
			}
			round[i] = now
		})
	}
	h.servers = round
	h.tasks.Go(func() {
		answers.Wait()
		close(done)
	})
	return done
}

// serverRow is a server on the overview.
type serverRow struct {
	serverState
	Mark     severity
	Role     string
	Answered string // how long the answer took
	Requests string // how long its requests take: the average and the longest
	Why      string
}

func serverRowOf(s serverState) serverRow {
	row := serverRow{serverState: s, Mark: good, Role: s.Mode}
	switch {
	case s.Asked.IsZero():
		row.Mark, row.Role = wait, "asked"
	case errors.Is(s.Err, fourletter.ErrHungUp):
		row.Mark, row.Role, row.Why = off, "not told", s.Err.Error()
	case errors.Is(s.Err, fourletter.ErrNotServing):
		row.Mark, row.Role, row.Why = warn, "not serving", s.Err.Error()+": it has no quorum, or has not joined it"
	case s.Err != nil:
		row.Mark, row.Role, row.Why = warn, "away", s.Err.Error()
	case s.Mode == readOnly:
		row.Mark, row.Why = warn, "it serves reads only, since it has no quorum; clients of Lockstep do not use it"
	case s.Mode == "":
		row.Role, row.Why = "answers", "its 4lw.commands.whitelist lacks srvr, so it does not tell its role"
	}
	if s.Err == nil && !s.Asked.IsZero() {
		row.Answered = fmt.Sprintf("%.1f ms", s.RoundTrip.Seconds()*1000)
	}
	if parts := strings.Split(s.Latency, "/"); len(parts) == 3 {
		row.Requests = parts[1] + " ms, at most " + parts[2]
	}
	return row
}
