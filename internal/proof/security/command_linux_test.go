package security

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// program builds the command line, once for a test.
func program(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lockstep")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-race=false", "-o", file,
		"github.com/lockstep-go/lockstep/cmd/lockstep").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}

// shell runs the command line with its environment.
type shell struct {
	t       *testing.T
	program string
	env     []string
}

func newShell(t *testing.T, program string, env ...string) *shell {
	s := &shell{t: t, program: program, env: env}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LOCKSTEP_") {
			s.env = append(s.env, v)
		}
	}
	return s
}

// run runs the command line, waits until it ends, and returns all output. The exit code must be
// code.
func (s *shell) run(code int, args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.program, args...)
	cmd.Env = s.env
	out, _ := cmd.CombinedOutput() // the state says how it ended
	require.Equal(s.t, code, cmd.ProcessState.ExitCode(), "%q: %s", args, out)
	return string(out)
}

// hold starts the command line, which holds a lock while a command runs. end ends it and returns
// all output.
func (s *shell) hold(args ...string) (pid int, end func() string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.program, args...)
	cmd.Env = s.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(s.t, cmd.Start())
	end = sync.OnceValue(func() string {
		_ = cmd.Process.Signal(syscall.SIGTERM) // the command ends with it
		_ = cmd.Wait()
		return out.String()
	})
	s.t.Cleanup(func() { end() })
	return cmd.Process.Pid, end
}

// processTree returns the process ids of a process and of all processes below it.
func processTree(root int) (pids []string) {
	pids = []string{strconv.Itoa(root)}
	for i := 0; i < len(pids); i++ {
		tasks, _ := filepath.Glob("/proc/" + pids[i] + "/task/*/children")
		for _, file := range tasks {
			text, _ := os.ReadFile(file) // it may have ended
			pids = append(pids, strings.Fields(string(text))...)
		}
	}
	return pids
}

// readProc returns a file below /proc of each process.
func readProc(pids []string, file string) string {
	var all strings.Builder
	for _, pid := range pids {
		text, _ := os.ReadFile(filepath.Join("/proc", pid, file)) // it may have ended
		all.Write(text)
		all.WriteByte('\n')
	}
	return all.String()
}

// TestNoSecretInCommandOutput checks the output of the command line, and what other users can see
// of its processes.
func TestNoSecretInCommandOutput(t *testing.T) {
	_, address := inMemory(t)
	lockstep := program(t)
	file := filepath.Join(t.TempDir(), "auth")
	require.NoError(t, os.WriteFile(file, []byte(user+":"+secret+"\n"), 0o600))
	for name, c := range map[string]struct {
		env           string
		inEnvironment bool
	}{
		"in a file":          {framework.EnvAuthFile + "=" + file, false},
		"in the environment": {framework.EnvAuth + "=" + user + ":" + secret, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, lockstep, c.env, framework.EnvServers+"="+address)
			pid, end := s.hold("lock", "held", "--", "sleep", "1000")
			var pids []string
			require.Eventually(t, func() bool {
				pids = processTree(pid)
				seen := readProc(pids, "cmdline")
				return strings.Contains(seen, "lockstep watchdog") && strings.Contains(seen, "sleep\x001000")
			}, patience, tick, "the watchdog and the command")
			requireNoSecret(t, readProc(pids, "cmdline"), "arguments", withUser()...)
			if !c.inEnvironment {
				requireNoSecret(t, readProc(pids, "environ"), "environment", withUser()...)
			} else {
				require.Contains(t, readProc(pids, "environ"), secret, "it is looked at the right way")
			}
			requireNoSecret(t, s.runSubcommands()+end(), "what is printed", withUser()...)
		})
	}
}

// runSubcommands returns the output of the subcommands.
func (s *shell) runSubcommands() string {
	printed := s.run(0, "locks", "--json") + s.run(0, "locks") + s.run(0, "locks", "held", "--json")
	require.Contains(s.t, printed, "/lockstep/locks/held")
	printed += s.run(1, "lock", "held", "-n", "--", "true")
	printed += s.run(0, "queue", "put", "mails", "hello") + s.run(0, "queue", "take", "mails", "--json")
	printed += s.run(0, "jobs", "--json") + s.run(64, "lock", "--bogus")
	printed += s.run(69, "locks", "--zk", "127.0.0.1:1", "--connect-timeout", "200ms")
	stranger := newShell(s.t, s.program, s.env...)
	stranger.env = append(stranger.env, framework.EnvAuthFile+"=", framework.EnvAuth+"=") // the last one counts
	printed += stranger.run(77, "lock", "held", "-n", "--", "true")
	stranger.env = append(stranger.env, framework.EnvAuth+"="+secret) // no user
	return printed + stranger.run(64, "locks")
}
