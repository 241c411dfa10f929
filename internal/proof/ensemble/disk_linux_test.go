package ensemble

import (
	"io"
	"log"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// TestAFullDiskStopsAServer fills the disk of a follower. The follower must stop serving, the
// others must not, and the follower must serve again after a restart with a free disk.
func TestAFullDiskStopsAServer(t *testing.T) {
	if os.Geteuid() != 0 && os.Getenv("CI") != "true" {
		t.Skip("mounting a disk needs root")
	}
	e := Private(t, Config{NoFsync: true, DiskMB: 64})
	leader, followers := awaitRoles(t, e)
	victim := followers[0]
	require.NoError(t, e.FillDisk(victim))
	conn, events, err := zk.Connect([]string{e.Addr(leader)}, 10*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
	require.NoError(t, err)
	go func() {
		for range events {
		}
	}()
	defer conn.Close()
	require.Eventually(t, func() bool {
		_, err := conn.Create("/fill-", make([]byte, 8<<10), zk.FlagSequence, zk.WorldACL(zk.PermAll))
		return err == nil && e.Mode(victim) == ""
	}, time.Minute, 20*time.Millisecond)
	require.True(t, e.HasFailed(victim))
	require.False(t, e.HasFailed(leader))
	require.NoError(t, e.Kill(victim))
	require.NoError(t, e.FreeDisk(victim))
	require.NoError(t, e.Restart(victim))
	require.NoError(t, e.Await(t.Context()))
	require.False(t, e.HasFailed(victim), "the new process has not")
	require.NoDirExists(t, e.layout.disk(victim)+"/version-2", "this process does not see the mount")
}

func TestTruncatedTransactionLogIsRemoved(t *testing.T) {
	dir := t.TempDir()
	logs := filepath.Join(dir, "version-2")
	require.NoError(t, os.Mkdir(logs, 0o755))
	for name, size := range map[string]int{"log.1": 100, "log.2": 0, "log.3": 15, "acceptedEpoch": 1} {
		require.NoError(t, os.WriteFile(filepath.Join(logs, name), make([]byte, size), 0o644))
	}
	require.NoError(t, removeTruncatedLogs(dir))
	left, err := filepath.Glob(filepath.Join(logs, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(logs, "acceptedEpoch"), filepath.Join(logs, "log.1")}, left)
}

func TestFillDiskNeedsADisk(t *testing.T) {
	e := &Ensemble{servers: make([]*server, 1)}
	require.ErrorIs(t, e.FillDisk(0), errNoDisk)
	require.ErrorIs(t, e.FreeDisk(0), errNoDisk)
	require.ErrorIs(t, e.FillDisk(1), os.ErrInvalid)
}
