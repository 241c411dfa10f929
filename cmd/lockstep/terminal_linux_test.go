package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// startOnTerminal starts lockstep in a session of its own with a terminal of its own, which it
// returns.
func (s *stage) startOnTerminal(args ...string) (*process, *os.File) {
	s.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = master.Close() })
	require.NoError(s.t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(s.t, err)
	slave, err := os.OpenFile(filepath.Join("/dev/pts", strconv.Itoa(number)), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(s.t, err)
	defer slave.Close()
	p := &process{stage: s, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = s.env, slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	require.NoError(s.t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the state says how it ended
	}()
	var shown bytes.Buffer
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(&shown, master) // its error says that the program has ended
	}()
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
		<-copied
		if s.t.Failed() {
			s.t.Logf("lockstep %q\n%s", args, shown.String())
		}
	})
	return p, master
}

// TestCtrlCEndsTheProgramWithItsCommand: the terminal sends the signal to the command's process
// group only.
func TestCtrlCEndsTheProgramWithItsCommand(t *testing.T) {
	command := []string{"--", "sh", "-c", `echo x >>$DIR/began; exec sleep 1000`}
	s := newStage(t)
	p, tty := s.startOnTerminal(append([]string{"cron", "demo", "@every 2s"}, command...)...)
	s.line(s.file("began"), 0)
	_, err := tty.WriteString("\x03")
	require.NoError(t, err)
	require.Equal(t, 130, p.wait())
	runs := s.ok("runs", "demo", "--json")
	require.Contains(t, runs, `"outcome":"stopped"`)

	s.ok("queue", "put", "mails", "ann")
	p, tty = s.startOnTerminal(append([]string{"queue", "take", "mails", "--follow"}, command...)...)
	s.line(s.file("began"), 1)
	_, err = tty.WriteString("\x03")
	require.NoError(t, err)
	require.Equal(t, 130, p.wait())
	require.Contains(t, s.ok("queue", "take", "mails", "--json"), `"attempt":1`, "the signal was no attempt")
	require.Equal(t, 2, strings.Count(read(s.file("began")), "x"))
}
