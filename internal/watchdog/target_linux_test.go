package watchdog

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnotherProcessOfThatNumberIsLeftAlone(t *testing.T) {
	c := start(t)
	id := identify(c.cmd.Process.Pid)
	id.started--
	_, err := aim(id)
	require.ErrorIs(t, err, errNoSuchProcess)

	k := newKennel(t)
	k.tell(begin{1, 1}, runs{1, id}, lease{1, now()}, Session{ID: 1, Timeout: time.Second})
	k.begin()
	k.end()
	require.NoError(t, k.dog.endCommands(time.Now()), "the command has ended")
	require.True(t, c.runs())
}

// TestAGroupOutlivesItsLeader kills what a command that has ended and was waited for has left.
func TestAGroupOutlivesItsLeader(t *testing.T) {
	c := start(t)
	target, err := aim(identify(c.cmd.Process.Pid))
	require.NoError(t, err)
	defer target.release()
	require.NoError(t, syscall.Kill(c.cmd.Process.Pid, syscall.SIGKILL))
	<-c.ended
	require.False(t, target.gone())
	target.kill()
	eventually(t, target.gone)
	require.False(t, running(c.worker))
}

func TestAZombieIsGone(t *testing.T) {
	attr := &os.ProcAttr{Sys: &syscall.SysProcAttr{Setpgid: true}}
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, attr)
	require.NoError(t, err)
	target, err := aim(identify(p.Pid))
	require.NoError(t, err)
	defer target.release()
	require.False(t, target.gone())
	target.kill()
	eventually(t, target.gone)
	_, err = p.Wait()
	require.NoError(t, err)
	require.True(t, target.gone())
}

func TestStatsOfOddNames(t *testing.T) {
	state, group, started, err := parseStat([]byte("12 (a) b (c)) S 1 77 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n"))
	require.NoError(t, err)
	require.Equal(t, byte('S'), state)
	require.Equal(t, 77, group)
	require.Equal(t, int64(4711), started)
	for _, b := range []string{"", "12", "12 (a) S 1", "12 (a) S 1 x 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711"} {
		_, _, _, err := parseStat([]byte(b))
		require.ErrorIs(t, err, errStat)
	}
}
