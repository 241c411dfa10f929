package lockstep

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// Health is the health of a service, for probes. As an http.Handler it answers paths that end in
// /livez and /readyz with 200 or, with the reason, 503. The zero value is that of a service that
// does not run yet. It is safe for concurrent use.
type Health struct {
	mu     sync.Mutex
	client *framework.Client
	phase  phase
}

// phase is what a service does at the moment.
type phase int

const (
	notRunning phase = iota
	starting
	running
	draining
	stuck // the grace is over, and a function has not returned
)

// errInUse is returned when a Health is passed to a second service.
var errInUse = errors.New("WithHealthState: another service uses this Health")

// Live returns nil as long as the process can do its work, and be it later: also while it starts,
// while the servers are away, and while it drains. It returns an error when the grace is over and a
// function has not returned. Restart a process that is not live.
func (h *Health) Live() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase == stuck {
		return errors.New("a part has not ended within the grace")
	}
	return nil
}

// Ready returns nil while the service runs: from when its parts have started, its memberships and
// registrations are listed, and the client has a session, until it drains. A session whose
// connection is lost for a moment suffices: what it holds stands. Send no requests to a process
// that is not ready.
func (h *Health) Ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.phase {
	case notRunning:
		return errors.New("the service does not run")
	case draining, stuck:
		return errors.New("the service drains")
	}
	if s := h.client.Status(); s.State != framework.Connected && s.State != framework.Suspended {
		var servers strings.Builder
		for _, server := range s.Servers {
			fmt.Fprintf(&servers, "; %v", server)
		}
		return fmt.Errorf("no session%s", &servers)
	}
	if h.phase == starting {
		return errors.New("the parts are starting")
	}
	return nil
}

// ServeHTTP answers a probe.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var err error
	switch path.Base(r.URL.Path) {
	case "livez":
		err = h.Live()
	case "readyz":
		err = h.Ready()
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n") // the probe may have gone
}

// use makes the health that of a service that starts.
func (h *Health) use(client *framework.Client) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase != notRunning && h.phase != stuck {
		return errInUse
	}
	h.client, h.phase = client, starting
	return nil
}

// enter enters a phase. A service that drains does not become ready.
func (h *Health) enter(p phase) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p != running || h.phase == starting {
		h.phase = p
	}
}
