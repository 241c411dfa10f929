//go:build unix

package watchdog

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// kennel is a dog in this process, and the pipe to it.
type kennel struct {
	t    *testing.T
	dog  *dog
	pipe *os.File
	over chan struct{} // closed when the pipe has ended for the dog
	arms int
}

func newKennel(t *testing.T) *kennel {
	t.Helper()
	heard, pipe, err := os.Pipe()
	require.NoError(t, err)
	k := &kennel{t: t, pipe: pipe, over: make(chan struct{})}
	k.dog, err = newDog(int(heard.Fd()), func() { k.arms++ })
	require.NoError(t, err)
	t.Cleanup(func() { k.end(); heard.Close() })
	return k
}

// begin lets the dog watch; until then it hears nothing, as if it was stopped.
func (k *kennel) begin() {
	go func() { defer close(k.over); k.dog.watch() }()
}

func (k *kennel) tell(messages ...message) {
	k.t.Helper()
	for _, m := range messages {
		_, err := k.pipe.Write(frame(m))
		require.NoError(k.t, err)
	}
}

// end ends the pipe and waits until the dog has noticed.
func (k *kennel) end() {
	k.pipe.Close()
	if k.over != nil {
		<-k.over
	}
}

// identified names a process of the test.
func identified(t *testing.T, pid int) identity {
	t.Helper()
	id, err := identify(pid)
	require.NoError(t, err)
	return id
}

// started is a running command with a worker in its process group.
type started struct {
	cmd    *exec.Cmd
	worker int
	ended  chan struct{}
}

func start(t *testing.T) *started {
	t.Helper()
	s := &started{cmd: exec.Command("sh", "-c", "sleep 1000 & echo $!; wait"), ended: make(chan struct{})}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	var buf [32]byte
	n, err := out.Read(buf[:])
	require.NoError(t, err)
	s.worker, err = strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	require.NoError(t, err)
	go func() { defer close(s.ended); _ = s.cmd.Wait() }()
	t.Cleanup(func() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL); <-s.ended })
	return s
}

func (s *started) runs() bool { return running(s.cmd.Process.Pid) && running(s.worker) }

// gone waits until the command and its worker have ended.
func (s *started) gone(t *testing.T) {
	t.Helper()
	eventually(t, func() bool { return !running(s.cmd.Process.Pid) && !running(s.worker) })
}

func running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if os.IsNotExist(err) {
		return syscall.Kill(pid, 0) == nil
	}
	return !strings.Contains(string(stat), ") Z ")
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 20*time.Second, 2*time.Millisecond)
}

func TestADogIsArmedOnce(t *testing.T) {
	k := newKennel(t)
	k.tell(Access{}, Session{ID: 1}, Session{ID: 2})
	k.begin()
	k.end()
	require.Equal(t, 1, k.arms)
	require.Equal(t, int64(2), k.dog.session.ID)
}

func TestNonsenseEndsTheWatch(t *testing.T) {
	for _, b := range [][]byte{{0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 4, 0, 0, 0, 99}, {0x7f, 0, 0, 0}} {
		k := newKennel(t)
		_, err := k.pipe.Write(b)
		require.NoError(t, err)
		k.begin()
		<-k.over
	}
}

func TestFramesMayComeInPieces(t *testing.T) {
	k := newKennel(t)
	k.begin()
	for _, b := range append(frame(Access{Servers: []string{"a"}}), frame(Session{ID: 7})...) {
		_, err := k.pipe.Write([]byte{b})
		require.NoError(t, err)
	}
	k.end()
	require.Equal(t, []string{"a"}, k.dog.access.Servers)
	require.Equal(t, int64(7), k.dog.session.ID)
}

func TestACommandIsKilledAtItsLeasesEnd(t *testing.T) {
	k, c, other := newKennel(t), start(t), start(t)
	k.begin()
	k.tell(begin{1, 1}, runs{1, identified(t, c.cmd.Process.Pid)}, begin{2, 2}, runs{2, identified(t, other.cmd.Process.Pid)})
	k.tell(lease{2, now() + time.Hour}, lease{1, now() + 50*time.Millisecond})
	c.gone(t)
	require.True(t, other.runs(), "its session is another")
}

func TestWhatIsFoundTooLateIsKilledAtOnce(t *testing.T) {
	k, c := newKennel(t), start(t)
	k.dog.commands[1] = &command{epoch: 1, until: now(), unknown: true, lapsed: true}
	k.tell(runs{1, identified(t, c.cmd.Process.Pid)})
	k.begin()
	c.gone(t)
}

// TestWhatWasSaidInTimeIsHeardLate has a dog that was stopped wake up after a lease's end, while a later one has
// been told meanwhile.
func TestWhatWasSaidInTimeIsHeardLate(t *testing.T) {
	for range 100 {
		k := newKennel(t)
		at := now()
		k.dog.commands[1] = &command{epoch: 1, until: at - time.Second}
		k.tell(lease{1, at + time.Hour}, lease{1, at}) // and never becomes shorter
		k.begin()
		k.end()
		require.False(t, k.dog.commands[1].lapsed)
	}
}

// TestALeaseNeverBecomesShorter tells a lease that ends earlier than the one before, as a message that was delayed does.
func TestALeaseNeverBecomesShorter(t *testing.T) {
	k := newKennel(t)
	defer k.begin()
	k.dog.take(begin{1, 1})
	k.dog.take(lease{1, 2 * time.Hour})
	k.dog.take(lease{1, time.Hour})
	require.Equal(t, 2*time.Hour, k.dog.nextLapse())
	k.dog.take(lease{1, 3 * time.Hour})
	require.Equal(t, 3*time.Hour, k.dog.nextLapse())
}

func TestAnEndedCommandIsForgotten(t *testing.T) {
	k, c := newKennel(t), start(t)
	k.tell(begin{1, 1}, runs{1, identified(t, c.cmd.Process.Pid)}, over{1}, over{1}, lease{1, now()}, Session{ID: 1, Timeout: time.Second})
	k.begin()
	k.end()
	require.NoError(t, k.dog.endCommands(time.Now()))
	require.True(t, c.runs())
}

func TestCommandsEndWithTheirParent(t *testing.T) {
	k, c, other := newKennel(t), start(t), start(t)
	k.tell(begin{1, 1}, runs{1, identified(t, c.cmd.Process.Pid)}, begin{2, 2}, runs{2, identified(t, other.cmd.Process.Pid)})
	k.begin()
	k.end()
	require.NoError(t, k.dog.endCommands(time.Now().Add(20*time.Second)))
	require.False(t, running(c.cmd.Process.Pid) || running(c.worker) || running(other.cmd.Process.Pid) || running(other.worker))
}

func TestACommandThatIsNotKnownKeepsTheSession(t *testing.T) {
	k := newKennel(t)
	k.tell(begin{1, 1}, Session{ID: 1, Password: []byte{1}, Timeout: time.Hour})
	k.begin()
	k.end()
	require.ErrorIs(t, k.dog.succeed(), errCommand)
}

func TestAFarewellIsTheEnd(t *testing.T) {
	k, c := newKennel(t), start(t)
	k.tell(begin{1, 1}, runs{1, identified(t, c.cmd.Process.Pid)}, Session{ID: 1, Password: []byte{1}, Timeout: time.Hour}, farewell{})
	k.begin()
	k.end()
	require.NoError(t, k.dog.succeed())
	require.True(t, c.runs())
}
