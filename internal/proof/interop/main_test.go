package interop

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

func TestMain(m *testing.M) {
	ensemble.AnnounceShared()
	goleak.VerifyTestMain(withPeers{m})
}

// withPeers ends the peers that the tests share before the goroutines are counted.
type withPeers struct{ *testing.M }

func (m withPeers) Run() int {
	code := m.M.Run()
	if err := errors.Join(curator.stop(), kazoo.stop(), os.RemoveAll(classes)); err != nil {
		fmt.Println(err)
		return max(code, 1)
	}
	return code
}

var classes string // the directory of Locks.java's

var (
	curator = &process{start: func() (p *Peer, err error) {
		if classes, err = os.MkdirTemp("", "interop-"); err != nil {
			return nil, err
		}
		return StartCurator(classes, CuratorLocks)
	}}
	kazoo = &process{start: StartKazoo}
)

// startCurator starts one of the Java programs for one test. If Curator is missing, the test is
// skipped, or fails if CI=true.
func startCurator(t testing.TB, program string) *Peer {
	t.Helper()
	peer, err := StartCurator(t.TempDir(), program)
	if errors.Is(err, ErrNotInstalled) && os.Getenv("CI") != "true" {
		t.Skipf("left out: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, peer.Close()) })
	return peer
}

// process is a peer that is started when it is first needed.
type process struct {
	start func() (*Peer, error)
	once  sync.Once
	peer  *Peer
	err   error
}

// get returns the running peer. If its library is missing, the test is skipped, or fails if
// CI=true.
func (p *process) get(t *testing.T) *Peer {
	t.Helper()
	p.once.Do(func() { p.peer, p.err = p.start() })
	if errors.Is(p.err, ErrNotInstalled) && os.Getenv("CI") != "true" {
		t.Skipf("left out: %v", p.err)
	}
	require.NoError(t, p.err)
	return p.peer
}

func (p *process) stop() error {
	if p.peer == nil {
		return nil
	}
	return p.peer.Close()
}
