package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// startOnTerminal starts lockstep in a session of its own with a terminal of its own, of 80 columns
// and 24 lines, which it returns.
func (s *stage) startOnTerminal(args ...string) (*process, *os.File) {
	s.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = master.Close() })
	require.NoError(s.t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	require.NoError(s.t, unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(s.t, err)
	slave, err := os.OpenFile(filepath.Join("/dev/pts", strconv.Itoa(number)), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(s.t, err)
	defer slave.Close()
	p := &process{stage: s, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.terminal.whole = make(chan struct{})
	p.cmd.Env, p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = s.env, slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	require.NoError(s.t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the state says how it ended
	}()
	go func() {
		defer close(p.terminal.whole)
		_, _ = io.Copy(&p.terminal, master) // its error says that the program has ended
	}()
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
		<-p.terminal.whole
		if s.t.Failed() {
			s.t.Logf("lockstep %q\n%s", args, p.terminal.String())
		}
	})
	return p, master
}

// onTerminal runs lockstep on a terminal, and returns the lines that it has shown.
func (s *stage) onTerminal(args ...string) (lines []string) {
	s.t.Helper()
	p, _ := s.startOnTerminal(args...)
	require.Equal(s.t, 0, p.wait())
	<-p.terminal.whole
	return strings.Split(strings.TrimSuffix(p.terminal.String(), "\r\n"), "\r\n")
}

// TestNumbersAreNamedOnATerminal, and stand alone in a pipe, where programs read them.
func TestNumbersAreNamedOnATerminal(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "mails", "ann")
	require.Equal(t, "1\t0\t0\n", s.ok("queue", "len", "mails"))
	require.Equal(t, []string{"1 item, 0 delayed, 0 dead letters"}, s.onTerminal("queue", "len", "mails"))
	code, _, _ := s.run("queue", "take", "mails", "--max-attempts", "1", "--", "false")
	require.Equal(t, 1, code)
	require.Regexp(t, `\t1\t"exit code 1"\tann\n$`, s.ok("queue", "dead", "mails"))
	require.Regexp(t, `\tattempts 1\t"exit code 1"\tann$`, s.onTerminal("queue", "dead", "mails")[0])
	require.Equal(t, "/lockstep/barriers/phase\t1\n", s.ok("barrier", "enter", "phase", "-n", "1"))
	require.Contains(t, s.onTerminal("barrier", "enter", "phase", "-n", "1"), "/lockstep/barriers/phase\tround 2")
	for _, args := range [][]string{{"lock", "deploy"}, {"elect", "billing"}} {
		p, _ := s.startOnTerminal(args...)
		s.until("the token", func() bool { return strings.Contains(p.terminal.String(), "\ttoken ") })
		p.signal(syscall.SIGTERM)
		require.Zero(t, p.wait())
	}
}

// TestWideRowsGoOnInTheNextLineOfATerminal, with whole columns, and stay in one line in a pipe.
func TestWideRowsGoOnInTheNextLineOfATerminal(t *testing.T) {
	s := newStage(t)
	s.start("lock", "deploy", "--", "sleep", "1000")
	s.queue("/lockstep/locks/deploy", 1)
	piped := strings.Split(s.ok("locks", "deploy"), "\n")
	require.Regexp(t, `^ +OWNER .* NODE$`, piped[1])
	require.Regexp(t, `^holds .*-lock-0000000000$`, piped[2])
	shown := s.onTerminal("locks", "deploy")
	require.Len(t, shown, 5)
	for _, line := range shown {
		require.LessOrEqual(t, utf8.RuneCountInString(withoutStyle(line)), 80)
	}
	require.Equal(t, "/lockstep/locks/deploy: mutex, 0 waiting", withoutStyle(shown[0]))
	require.Regexp(t, `^ +OWNER .* SESSION$`, withoutStyle(shown[1]))
	require.Regexp(t, `^    NODE$`, withoutStyle(shown[2]))
	require.Regexp(t, `^    _c_.*-lock-0000000000$`, withoutStyle(shown[4]))
}

// withoutStyle is a text without the sequences that colour it.
func withoutStyle(text string) string {
	return regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(text, "")
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
