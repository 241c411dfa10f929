//go:build unix

package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/cli"
)

func TestQueuePutPeekAndTake(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "mails", "ann", "bob", "two words")
	code, out, _ := s.run("queue", "len", "mails")
	require.Equal(t, 0, code)
	require.Equal(t, "3\t0\t0\n", out)
	_, out, _ = s.run("queue", "peek", "mails")
	require.Equal(t, "ann\n", out)
	_, out, _ = s.run("queue", "take", "mails", "-n", "3")
	require.Equal(t, "ann\nbob\ntwo words\n", out)
	code, _, errs := s.run("queue", "take", "mails", "-w", "1")
	require.Equal(t, cli.ExitNotObtained, code, errs)
	code, _, errs = s.run("queue", "peek", "mails")
	require.Equal(t, cli.ExitNotObtained, code)
	require.Contains(t, errs, "queue is empty")
}

// ok runs lockstep and wants it to succeed.
func (s *stage) ok(args ...string) string {
	s.t.Helper()
	code, out, errs := s.run(args...)
	require.Equal(s.t, 0, code, errs)
	return out
}

func TestQueueLinesAndCommands(t *testing.T) {
	s := newStage(t)
	var lines []string
	for i := range 1200 {
		lines = append(lines, fmt.Sprint("line ", i))
	}
	cmd := exec.Command(program, "queue", "put", "work", "--strict")
	cmd.Env = s.env
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	out := s.ok("queue", "take", "work", "-n", "2", "--", "sh", "-c", `cat; echo " $LOCKSTEP_ATTEMPT"`)
	require.Equal(t, "line 0 1\nline 1 1\n", out)
	require.Equal(t, "1198\t0\t0\n", s.ok("queue", "len", "work"))
	out = s.ok("queue", "take", "work", "-n", "1198", "--json")
	require.Equal(t, 1198, strings.Count(out, "\n"))
	require.Contains(t, out, `{"item":"line 1199","attempt":1,"enqueued":"`)
}

func TestALineThatIsTooLongIsNamed(t *testing.T) {
	s := newStage(t)
	const maxLine = 1 << 20
	for _, length := range []int{maxLine - 1, maxLine + 1} { // too large for the servers, and for lockstep
		cmd := exec.Command(program, "queue", "put", "work")
		cmd.Env = s.env
		cmd.Stdin = strings.NewReader("first\n" + strings.Repeat("x", length) + "\n")
		said, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, cli.ExitMismatch, cmd.ProcessState.ExitCode(), "%s", said)
		require.Contains(t, string(said), "too large")
		require.Equal(t, length > maxLine,
			strings.Contains(string(said), "line 2 of standard input has more than 1048576 bytes"), "%s", said)
	}
	require.Equal(t, "2\t0\t0\n", s.ok("queue", "len", "work"), "the lines before")
}

// TestASignalEndsAPutThatWaitsForInput from a pipe that stays open.
func TestASignalEndsAPutThatWaitsForInput(t *testing.T) {
	s := newStage(t)
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	s.in = in
	p := s.start("queue", "put", "q")
	require.NoError(t, in.Close())
	s.in = nil
	_, err = out.WriteString("first\nunfinished")
	require.NoError(t, err)
	s.until("the first line", func() bool { _, o, _ := s.run("queue", "len", "q"); return o == "1\t0\t0\n" })
	p.signal(syscall.SIGTERM)
	require.Equal(t, 143, p.wait())
	require.Empty(t, read(p.err))
	require.Equal(t, "1\t0\t0\n", s.ok("queue", "len", "q"))
}

func TestQueueCommandsThatFail(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "q", "poison")
	count := filepath.Join(s.dir, "count")
	code, _, _ := s.run("queue", "take", "q", "-n", "3", "--max-attempts", "3", "--retry-after", "100ms", "--", "sh",
		"-c", "cat >> "+count+"; exit 7")
	require.Equal(t, 7, code)
	require.Equal(t, strings.Repeat("poison", 3), read(count))
	require.Equal(t, "0\t0\t1\n", s.ok("queue", "len", "q"))
	dead := s.ok("queue", "dead", "q")
	require.Contains(t, dead, "\t3\t\"exit code 7\"\tpoison\n")
	s.ok("queue", "requeue", "q", "--all")
	require.Equal(t, "poison\n", s.ok("queue", "take", "q"))
}

func TestQueueRefusals(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "q", "x", "--capacity", "1", "--dedup", "1h", "--id", "7")
	for want, args := range map[int][][]string{
		cli.ExitNotObtained: {{"queue", "put", "q", "y", "-n"}, {"queue", "put", "q", "y", "-n", "--id", "7"}},
		cli.ExitMismatch: {{"queue", "put", "q", "y", "--capacity", "2"}, {"queue", "put", "q", "y", "--strict"},
			{"queue", "len", "/lockstep/queues"}},
		cli.ExitUsage: {{"queue", "put", "plain", "y", "--id", "7"}, {"queue", "put"},
			{"queue", "put", "q", "y", "--priority", "10"}, {"queue", "take", "q", "-n", "0"},
			{"queue", "put", "q", "y", "--capacity", "0"}, {"queue", "take", "q", "--max-attempts", "-1"},
			{"queue", "put", "q", "a", "b", "--id", "1"},
			{"queue", "requeue", "q"}, {"queue", "put", "q", "y", "--header", "name"},
			{"queue", "put", "q", "y", "--header", "=value"},
			{"queue", "put", "q", "y", "--header", "a=1", "--header", "a=2"},
			{"queue", "put", "q", "y", "--header", "a=\xff"},
			{"queue", "put", "q", "y", "--expiry", "0.1"}, {"queue", "put", "q", "y", "--expiry", "5", "--delay", "5"},
			{"queue", "len", "/"}},
		cli.ExitNoCommand: {{"queue", "take", "q", "--", "no-such-command"}},
	} {
		for _, a := range args {
			code, _, errs := s.run(a...)
			require.Equal(t, want, code, "%q: %s", a, errs)
			require.NotEmpty(t, errs)
		}
	}
}

// TestAPutThatFailsTellsHowFarItCame: a script continues after that item.
func TestAPutThatFailsTellsHowFarItCame(t *testing.T) {
	s := newStage(t)
	code, _, errs := s.run("queue", "put", "q", "a", "b", "c", "--capacity", "2", "-n")
	require.Equal(t, cli.ExitNotObtained, code)
	require.Contains(t, errs, "2 put into /lockstep/queues/q")
}

func TestQueueCancel(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "q", "x", "--dedup", "1h", "--id", "7")
	s.ok("queue", "put", "q", "y", "--id", "8")
	require.Empty(t, s.ok("queue", "cancel", "q", "7"))
	require.Equal(t, "y\n", s.ok("queue", "take", "q"))
	require.Equal(t, "0\t0\t0\n", s.ok("queue", "len", "q"))
	s.ok("queue", "put", "plain", "x")
	for want, args := range map[int][][]string{
		cli.ExitNotObtained: {{"queue", "cancel", "q", "8"}, {"queue", "cancel", "q", "9"},
			{"queue", "cancel", "none", "7"}},
		cli.ExitUsage: {{"queue", "cancel", "plain", "7"}, {"queue", "cancel", "q"}, {"queue", "cancel", "q", "7", "8"},
			{"queue", "cancel", "q", "7", "--", "8"}, {"queue", "cancel", "q", ""}},
	} {
		for _, a := range args {
			code, _, errs := s.run(a...)
			require.Equal(t, want, code, "%q: %s", a, errs)
			require.NotEmpty(t, errs)
		}
	}
}

func TestQueueSettings(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "q", "x", "--capacity", "1")
	s.ok("queue", "set", "q", "--capacity", "2", "--dedup", "1h")
	s.ok("queue", "put", "q", "y", "-n", "--id", "7")
	for want, args := range map[int][]string{
		cli.ExitMismatch:    {"queue", "put", "q", "z", "--capacity", "1"},
		cli.ExitNotObtained: {"queue", "put", "q", "z", "-n"},
		cli.ExitUsage:       {"queue", "set", "q"},
	} {
		code, _, errs := s.run(args...)
		require.Equal(t, want, code, "%q: %s", args, errs)
	}
	s.ok("queue", "put", "plain", "x")
	code, _, errs := s.run("queue", "set", "plain", "--capacity", "5")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "without a bound")
}

func TestQueueRetryPolicy(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "mails", "ann", "--retry-min", "1h", "--retry-max", "2h")
	code, _, _ := s.run("queue", "take", "mails", "--", "false")
	require.Equal(t, 1, code)
	require.Equal(t, "0\t1\t0\n", s.ok("queue", "len", "mails"))
	code, _, errs := s.run("queue", "put", "mails", "bob", "--retry-min", "2h")
	require.Equal(t, cli.ExitMismatch, code)
	require.Contains(t, errs, "retry policy")
	require.Contains(t, errs, "lockstep queue set")
	s.ok("queue", "set", "mails", "--retry-max", "4h")
	s.ok("queue", "put", "mails", "bob", "--retry-min", "1h", "--retry-max", "4h")
	s.ok("queue", "set", "mails", "--no-retry")
	s.ok("queue", "set", "mails", "--retry-min", "2h")
	s.ok("queue", "put", "mails", "bob", "--retry-min", "2h")
	code, _, errs = s.run("queue", "put", "other", "bob", "--retry-max", "2h")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "Min 0s")
}

// TestQueueHeaders are shown in JSON, where hostile ones are no orders to a terminal.
func TestQueueHeaders(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "q", "x", "--header", "tenant=7=8", "--header", "bad\u009b=\x1b[31m")
	want := map[string]any{"tenant": "7=8", "bad\u009b": "\x1b[31m"}
	var put any
	for _, command := range [][]string{{"peek"}, {"dead"}, {"take"}} {
		out := s.ok(append([]string{"queue"}, append(command, "q", "--json")...)...)
		if command[0] == "peek" {
			code, _, _ := s.run("queue", "take", "q", "--max-attempts", "1", "--", "false")
			require.Equal(t, 1, code)
		}
		if command[0] == "dead" {
			s.ok("queue", "requeue", "q", "--all")
		}
		require.NotRegexp(t, `[^ -~\n]`, out)
		v := decode(t, out)
		require.Equal(t, want, v["headers"], command)
		require.NotEmpty(t, v["enqueued"])
		if put == nil {
			put = v["enqueued"]
		}
		require.Equal(t, put, v["enqueued"], "each command shows the first put")
	}
}

// TestQueueItemsOfAnyBytes are as they are for programs, exact in JSON, and no orders to a
// terminal.
func TestQueueItemsOfAnyBytes(t *testing.T) {
	s := newStage(t)
	hostile := "\xff\x1b[31m\u009b\u202e"
	s.ok("queue", "put", "q", hostile, "plain")
	require.Equal(t, hostile+"\n", s.ok("queue", "peek", "q"))
	out := s.ok("queue", "peek", "q", "--json")
	require.NotRegexp(t, `[^ -~\n\x{fffd}]`, out)
	for range 2 {
		v := decode(t, out)
		require.Equal(t, "\ufffd\x1b[31m\u009b\u202e", v["item"])
		require.Equal(t, base64.StdEncoding.EncodeToString([]byte(hostile)), v["item_base64"])
		code, _, _ := s.run("queue", "take", "q", "--max-attempts", "1", "--", "false")
		require.Equal(t, 1, code)
		out = s.ok("queue", "dead", "q", "--json")
	}
	require.Contains(t, s.ok("queue", "dead", "q"), "\t\"\\xff\\x1b[31m\\u009b\\u202e\"\n",
		"for people, if it cannot be printed")
	require.NotContains(t, s.ok("queue", "dead", "q", "--json")[strings.Index(out, "}")+1:], "base64")
	_, _, errs := s.run("queue", "take", "empty", "-w", "0.2")
	require.Equal(t, "lockstep: queue /lockstep/queues/empty: no item came within 200ms (-w)\n", errs)
}

// TestQueueTakeTellsOfFailures: when an item comes again, and that --timeout has ended its command.
func TestQueueTakeTellsOfFailures(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "q", "ann")
	code, _, errs := s.run("queue", "take", "q", "-n", "2", "--max-attempts", "2", "--", "sh", "-c", "exit 7")
	require.Equal(t, 7, code)
	require.Contains(t, errs, `item "ann": attempt 1 has failed: exit code 7; it comes again after 1s`)
	require.Contains(t, errs, `item "ann": attempt 2 has failed: exit code 7; it is a dead letter now`)
	s.ok("queue", "put", "q", "bob")
	code, _, errs = s.run("queue", "take", "q", "--timeout", "50ms", "--retry-after", "1h", "--", "sleep", "1000")
	require.Equal(t, cli.ExitTimeout, code)
	require.Contains(t, errs,
		`item "bob": attempt 1 has failed: the command took longer than 50ms (--timeout); it comes again after 1h`)
	require.Equal(t, "0\t1\t1\n", s.ok("queue", "len", "q"))
}

// TestQueueTakeGoesOnAfterALoss of the item in hand.
func TestQueueTakeGoesOnAfterALoss(t *testing.T) {
	s := newStage(t)
	s.ok("queue", "put", "q", "ann")
	p := s.start("queue", "take", "q", "--follow", "--", "sh", "-c",
		`echo x >>$DIR/began; [ "$LOCKSTEP_ATTEMPT" = 1 ] && exec sleep 1000; exit 0`)
	s.line(s.file("began"), 0)
	s.expire()
	s.line(s.file("began"), 1)
	s.until("the acknowledgement", func() bool { _, out, _ := s.run("queue", "len", "q"); return out == "0\t0\t0\n" })
	p.signal(syscall.SIGTERM)
	require.Equal(t, cli.ExitLost, p.wait())
	require.Contains(t, read(p.err), "it comes again")
}
