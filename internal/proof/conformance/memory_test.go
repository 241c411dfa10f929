package conformance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/proof/conformance"
	"github.com/lockstep-go/lockstep/internal/wire"
	"github.com/lockstep-go/lockstep/internal/zksetting"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func startMemory(t *testing.T) *zktest.Server {
	t.Helper()
	return zktest.Start(t, zktest.WithTick(500*time.Millisecond), zktest.WithContainerInterval(200*time.Millisecond),
		zktest.WithExtendedTypes())
}

func TestMemoryConformsOverTCP(t *testing.T) {
	srv := startMemory(t)
	addr, err := srv.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	conformance.Run(t, conformance.Target{Servers: []string{addr}})
}

func TestMemoryConformsOverLinks(t *testing.T) {
	srv := startMemory(t)
	conformance.Run(t, conformance.Target{Servers: srv.Servers(), Dial: srv.Link("suite").Dial})
}

// TestTooLargeCloseEndsMemoryServer checks that a close ends the in-memory server at the size at
// which it ends three real servers.
func TestTooLargeCloseEndsMemoryServer(t *testing.T) {
	for _, buffer := range []int{10_000, wire.MaxFrame} {
		t.Run(fmt.Sprint(buffer), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, err := zktest.New(zktest.WithJuteMaxBuffer(buffer))
				require.NoError(t, err)
				defer srv.Close()
				target := conformance.Target{Servers: srv.Servers(), Dial: srv.Link("suite").Dial}
				conformance.CloseBySize(t, target, conformance.LargestClose(buffer))
				conformance.RequireService(t, target)
				require.NoError(t, srv.Err())
				conformance.CloseBySize(t, target, conformance.LargestClose(buffer)+1)
				conformance.RequireNoService(t, target)
				require.ErrorIs(t, srv.Err(), zktest.ErrSessionTooLarge)
				require.ErrorContains(t, srv.Err(),
					fmt.Sprintf("a transaction of %d bytes where %d is the limit", 2*buffer+1, 2*buffer))
			})
		})
	}
}

// TestMemoryAnswersAsRecorded compares the in-memory server with a real server's answers that
// package apache has recorded.
func TestMemoryAnswersAsRecorded(t *testing.T) {
	for _, setting := range conformance.Settings {
		if setting.Recorded == "" {
			continue
		}
		t.Run(setting.Name, func(t *testing.T) {
			t.Parallel()
			recorded, err := os.ReadFile(filepath.Join("testdata", setting.Recorded))
			require.NoError(t, err)
			options := []zktest.Option{zktest.WithTick(500 * time.Millisecond)}
			setting.Each(func(name, value string) { options = append(options, zksetting.Option(name, value)) })
			srv := zktest.Start(t, options...)
			addr, err := srv.ListenTCP("127.0.0.1:0")
			require.NoError(t, err)
			want := strings.Split(strings.TrimSuffix(string(recorded), "\n"), "\n")
			got := conformance.Transcript(t, addr, setting)
			for i := range min(len(want), len(got)) {
				require.Equal(t, want[i], got[i], "line %d", i+1)
			}
			require.Len(t, got, len(want))
		})
	}
}
