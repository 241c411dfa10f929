//go:build unix

package main

import (
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/zktest"
)

// diagnose runs lockstep doctor and returns what it finds wrong, as "check: text". On a busy
// machine, doctor rightly finds that a healthy server is slow: then it is run again.
func (s *stage) diagnose(args ...string) (code int, wrong []string, all string) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		code, wrong, all = s.diagnoseOnce(args...)
		slow := slices.ContainsFunc(wrong, func(w string) bool {
			return strings.HasPrefix(w, "reads: ") ||
				strings.HasPrefix(w, "writes: ")
		})
		if !slow || time.Now().After(deadline) {
			return code, wrong, all
		}
	}
}

func (s *stage) diagnoseOnce(args ...string) (code int, wrong []string, all string) {
	s.t.Helper()
	code, out, errs := s.run(append([]string{"doctor", "--json"}, args...)...)
	for line := range strings.Lines(out) {
		one := decode(s.t, line)
		if one["ok"] == false {
			require.NotEmpty(s.t, one["advice"], line)
			wrong = append(wrong, one["check"].(string)+": "+one["text"].(string))
		}
	}
	return code, wrong, out + errs
}

func TestDoctorOfAHealthyServer(t *testing.T) {
	s := newStage(t)
	code, wrong, all := s.diagnose()
	require.Empty(t, wrong, all)
	require.Zero(t, code)
	for _, check := range []string{`"server"`, `"quorum"`, `"timeout"`, `"reads"`, `"writes"`, `"access"`, `"clock"`,
		`"nodes"`, `"locks"`} {
		require.Contains(t, all, `"check":`+check)
	}
	var out string
	s.until("the exit code 0, unless the machine is busy", func() bool {
		code, out, _ = s.run("doctor")
		return code == 0
	})
	require.Contains(t, out, "ok    server      "+s.servers+": standalone")
	s.left()
}

// TestDoctorTellsOfAShorterTimeoutOnce: as a finding, and not as a warning as well.
func TestDoctorTellsOfAShorterTimeoutOnce(t *testing.T) {
	s := newStage(t, zktest.WithSessionTimeouts(time.Second, 10*time.Second))
	code, out, errs := s.run("doctor")
	require.Equal(t, 1, code)
	require.Contains(t, out, "asked for 40s, granted 10s")
	require.Empty(t, errs)
}

func TestDoctorFindsWhatIsWrong(t *testing.T) {
	s := newStage(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	c, err := framework.New(framework.Config{Servers: strings.Split(s.servers, ",")})
	require.NoError(t, err)
	c.Start()
	defer c.Close(t.Context())
	require.NoError(t, c.MakeDirs(t.Context(), "/lockstep/locks/deploy"))
	require.NoError(t, c.Create(t.Context(),
		"/lockstep/locks/deploy/_c_3d6dc0ac-6d8b-4f3b-8b9e-0c6c2f0d8a11-lock-0000000007", []byte("x"),
		framework.Persistent))
	require.NoError(t, c.Create(t.Context(), "/lockstep/\u202elarge", make([]byte, 800_001), framework.Persistent))
	require.NoError(t, c.MakeDirs(t.Context(), "/lockstep/locks/$(touch${IFS}f)"))
	require.NoError(t, c.Create(t.Context(),
		"/lockstep/locks/$(touch${IFS}f)/_c_3d6dc0ac-6d8b-4f3b-8b9e-0c6c2f0d8a11-lock-0000000007", []byte("x"),
		framework.Persistent))
	s.zk.Skew(time.Hour)
	code, wrong, all := s.diagnose("--zk", s.servers+","+silent.Addr().String(), "--session-timeout", "5m")
	require.Equal(t, 1, code)
	text := strings.Join(wrong, "\n")
	for _, want := range []string{
		"server: " + silent.Addr().String(), "timeout: asked for 5m0s, granted ", "size: /lockstep/",
		"has 800001 bytes of data", "clock: ", "behind the ensemble's",
		"orphan: /lockstep/locks/deploy/_c_3d6dc0ac", "quorum: ",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, all, "\u202e")
	code, out, _ := s.run("doctor", "/lockstep/locks")
	require.Equal(t, 1, code)
	require.NotContains(t, out, "bytes of data")
	require.Contains(t, out,
		"-> find out who created it, and delete it: lockstep release /lockstep/locks/deploy --node "+
			"/lockstep/locks/deploy/_c_")
	require.Contains(t, out,
		"lockstep release '/lockstep/locks/$(touch${IFS}f)' --node '/lockstep/locks/$(touch${IFS}f)/_c_")
}

func TestDoctorNamesTheServersThatCannotBeReached(t *testing.T) {
	s := onServers(t, "127.0.0.1:1")
	code, wrong, all := s.diagnose("--connect-timeout", "1")
	require.Equal(t, 69, code, all)
	require.Len(t, wrong, 1)
	require.Contains(t, wrong[0], "server: 127.0.0.1:1: connect: connection refused")
	require.Equal(t, 1, strings.Count(all, "refused"), "it is said once")
	require.Contains(t, all, "lockstep: no session within 1s\n")
}

func TestDoctorNamesTheMissingPermission(t *testing.T) {
	s := newStage(t)
	c, err := framework.New(framework.Config{
		Servers: strings.Split(s.servers, ","),
		Auth:    []framework.Credential{{Scheme: "digest", Auth: []byte("ann:secret")}},
		ACL:     framework.CreatorOnlyACL(),
	})
	require.NoError(t, err)
	c.Start()
	defer c.Close(t.Context())
	require.NoError(t, c.Create(t.Context(), "/lockstep", nil, framework.Persistent))
	require.NoError(t, c.Create(t.Context(), "/lockstep/x", nil, framework.Persistent))
	_, wrong, all := s.diagnose("/none")
	require.Contains(t, strings.Join(wrong, "\n"), "nodes: there is no node /none: nothing was examined below it", all)
	_, wrong, all = s.diagnose()
	require.Contains(t, strings.Join(wrong, "\n"),
		"access: no permission to create and delete below /lockstep, without credentials", all)
	s.env = append(s.env, "LOCKSTEP_AUTH=ann:secret")
	_, wrong, all = s.diagnose()
	require.NotContains(t, strings.Join(wrong, "\n"), "access:", all)
	require.NotContains(t, all, "secret")
	require.NoError(t, connectAs(t, s, "/app", "ann:secret").MakeDirs(t.Context(), "/lockstep/locks"))
	code, wrong, all := s.diagnose("--root", "/app")
	require.Zero(t, code, all)
	require.Empty(t, wrong)
	require.NotContains(t, all, "secret")
}

func TestLocksAreChosenSortedAndBounded(t *testing.T) {
	s := newStage(t, zktest.WithTick(time.Second))
	hold := func(name string, n int) {
		for i := range n {
			s.start("lock", name, "--", "sleep", "1000")
			s.queue("/lockstep/locks/"+name, i+1)
		}
	}
	hold("a", 1)
	hold("b", 3)
	hold("c", 2)
	paths := func(args ...string) (out []string) {
		for line := range strings.Lines(s.ok(append([]string{"locks", "--json"}, args...)...)) {
			out = append(out, strings.TrimPrefix(decode(t, line)["path"].(string), "/lockstep/locks/"))
		}
		return out
	}
	require.Equal(t, []string{"a", "b", "c"}, paths())
	require.Equal(t, []string{"b", "c"}, paths("--waiting"))
	require.Equal(t, []string{"b", "c", "a"}, paths("--sort", "waiting"))
	require.Equal(t, []string{"a", "b"}, paths("--sort", "age", "--limit", "2"))
	require.Empty(t, paths("--older", "1h"))
	require.Empty(t, paths("--owner", "no such"))
	_, _, errs := s.run("locks", "--limit", "1")
	require.Contains(t, errs, "2 locks are left out by --limit 1")
	for _, bad := range [][]string{{"--sort", "size"}, {"--limit", "0"}} {
		code, _, _ := s.run(append([]string{"locks"}, bad...)...)
		require.Equal(t, 64, code)
	}
}

func TestNodesOfQueuesAndSchedulersAreNoClaims(t *testing.T) {
	s := newStage(t)
	s.start("cron", "demo", "0 3 1 1 *", "--", "true")
	s.queue("/lockstep/jobs/demo/members", 1)
	s.start("barrier", "enter", "phase", "-n", "2", "--", "true")
	s.members("/lockstep/barriers/phase", 1)
	s.ok("queue", "put", "mails", "a")
	s.start("queue", "take", "mails", "--", "sleep", "1000")
	s.until("a ticket", func() bool { return strings.Contains(s.ok("locks", "/", "--all"), "/tickets/items/") })
	all := s.ok("locks", "/", "--all")
	require.Contains(t, all, "/lockstep/jobs/demo/members/")
	require.Contains(t, all, "/lockstep/barriers/phase/in-")
	require.NotContains(t, s.ok("locks", "/"), "claim")
}

// TestDoctorCountsTheLocksThatAreListed, and takes none of Lockstep's own nodes for another
// program's.
func TestDoctorCountsTheLocksThatAreListed(t *testing.T) {
	s := newStage(t)
	s.start("lock", "deploy", "--", "sleep", "1000")
	s.queue("/lockstep/locks/deploy", 1)
	s.ok("revoke", "deploy")
	s.start("barrier", "enter", "phase", "-n", "2", "--", "true")
	s.members("/lockstep/barriers/phase", 1)
	s.start("register", "billing", "10.0.0.7:8080")
	s.queue("/lockstep/services/billing", 1)
	_, out, _ := s.run("doctor")
	require.Contains(t, out, "1, as lockstep locks /lockstep lists them\n")
	require.Len(t, strings.Split(strings.TrimSpace(s.ok("locks", "/lockstep", "--json")), "\n"), 1)
	require.NoError(t, client(t, s).Create(t.Context(),
		"/lockstep/locks/deploy/_c_3d6dc0ac-6d8b-4f3b-8b9e-0c6c2f0d8a11-lock-0000000007", []byte("x"),
		framework.Ephemeral))
	_, out, _ = s.run("doctor")
	require.Contains(t, out,
		"1, as lockstep locks /lockstep lists them; other programs have written 1 of their nodes\n")
}

// TestDoctorKnowsAServerThatHangsUp: it runs, and so is not to be started, but has all the
// connections that it accepts from this address.
func TestDoctorKnowsAServerThatHangsUp(t *testing.T) {
	hangingUp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer hangingUp.Close()
	go func() {
		for {
			c, err := hangingUp.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	s := newStage(t)
	_, out, _ := s.run("doctor", "--zk", s.servers+","+hangingUp.Addr().String())
	require.Contains(t, out,
		hangingUp.Addr().String()+": it accepted the connection, and closed it without an answer\n")
	require.Contains(t, out, "raise the server's maxClientCnxns")
	require.NotContains(t, out, "start it")
	require.NotContains(t, out, "start the other servers")
}

func TestReleaseDeletesANodeOnlyAsItWasShown(t *testing.T) {
	s := newStage(t)
	holder := s.start("lock", "deploy", "--", "sleep", "1000")
	s.queue("/lockstep/locks/deploy", 1)
	next := s.start("lock", "deploy", "--", "sh", "-c", "echo held")
	s.queue("/lockstep/locks/deploy", 2)
	node := decode(t, s.ok("locks", "deploy", "--json"))["holders"].([]any)[0].(map[string]any)["node"].(string)
	code, _, errs := s.run("release", "deploy")
	require.Equal(t, 64, code)
	require.Contains(t, errs, "--node is missing")
	code, _, errs = s.run("release", "deploy", "--node", node)
	require.Equal(t, 64, code)
	require.Contains(t, errs, "give -y if you are sure")
	code, _, errs = s.run("release", "deploy", "--node", "lock-0000000099", "-y")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "has no node")
	code, _, errs = s.run("revoke", "deploy", "--node", "")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "--node is empty: leave it out to ask all holders")
	s.ok("revoke", "deploy")
	asked := decode(t, s.ok("locks", "deploy", "--json"))["holders"].([]any)[0].(map[string]any)
	require.Equal(t, true, asked["revoked"])
	require.NotContains(t, asked, "foreign")
	require.NotEmpty(t, asked["host"])
	require.Contains(t, s.ok("locks"), asked["owner"].(string)+", asked to let go")
	require.Empty(t, s.ok("check", "--silent-holder", "1h"), "it may end its work first")
	_, out, _ := s.run("check", "--silent-holder", "1ns")
	require.Contains(t, out, "an operator has asked "+asked["owner"].(string)+" on ")
	s.ok("release", "deploy", "--node", node[strings.LastIndexByte(node, '/')+1:], "-y")
	require.Equal(t, "held", next.line(0))
	require.Equal(t, 0, next.wait())
	require.Equal(t, 75, holder.wait(), "it notices")
	code, _, errs = s.run("revoke", "deploy")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "no holder that could be asked")
}

func TestVersion(t *testing.T) {
	v := versionOf(&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}},
		true)
	require.Equal(t, "v1.2.3", v.Version)
	require.Equal(t, "abc", v.Revision)
	require.True(t, v.Modified)
	require.Equal(t, "unknown", versionOf(nil, false).Revision)
	s := onServers(t, "")
	require.Contains(t, s.ok("version"), "lockstep ")
	require.NotEmpty(t, decode(t, s.ok("version", "--json"))["go"])
}

// TestTheLeaderOfAnElectionIsNotRevoked: its program does not listen, and its node would lose its
// id.
func TestTheLeaderOfAnElectionIsNotRevoked(t *testing.T) {
	s := newStage(t)
	s.start("elect", "billing", "--id", "web-1", "--", "sleep", "1000")
	s.queue("/lockstep/elections/billing", 1)
	code, _, errs := s.run("revoke", "/lockstep/elections/billing")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "hand over with lockstep elections transfer")
	require.Contains(t, s.ok("elections"), "web-1")
}
