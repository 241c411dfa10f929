//go:build unix

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// digest is a credential of that scheme.
func digest(userAndPassword string) framework.Credential {
	return framework.Credential{Scheme: "digest", Auth: []byte(userAndPassword)}
}

// connectAs returns a client below a root with a credential, whose nodes and directories have an
// ACL.
func connectAs(t *testing.T, s *stage, root, userAndPassword string, acl ...framework.ACL) *framework.Client {
	t.Helper()
	cfg := framework.Config{Servers: strings.Split(s.servers, ","), Root: root, ACL: acl, ParentACL: acl}
	if userAndPassword != "" {
		cfg.Auth = []framework.Credential{digest(userAndPassword)}
	}
	c, err := framework.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// withAuth is the stage for a client that presents a digest.
func (s *stage) withAuth(userAndPassword string) *stage {
	other := *s
	other.env = append(s.env[:len(s.env):len(s.env)], "LOCKSTEP_AUTH="+userAndPassword)
	return &other
}

var (
	owned  = framework.CreatorOnlyACL()[0]
	seen   = framework.ACL{Perms: framework.PermRead, Scheme: "world", ID: "anyone"}
	opened = framework.OpenACL()[0]
)

func TestWhoIsPermittedIsNamed(t *testing.T) {
	s := newStage(t)
	s.env = append(s.env, "LOCKSTEP_ROOT=/app")
	whoIsPermittedIsNamed(t, s, "/app")
}

// TestTheRefusingDirectoryIsNamed though its ACL may not be read: it is the nearest one that there
// is above the lock.
func TestTheRefusingDirectoryIsNamed(t *testing.T) {
	s := newStage(t)
	stranger := s.env
	s.env = append(s.env, framework.EnvAuth+"=ann:secret")
	s.ok("lock", "/closed/deploy", "--", "true")
	s.env = stranger
	for path, refusing := range map[string]string{"/closed/other": "/closed", "/closed/new/other": "/closed"} {
		code, _, errs := s.run("lock", path, "--", "true")
		require.Equal(t, 77, code)
		require.Contains(t, errs, "no permission; the ACL of "+refusing+" permits neither this nor to read it\n")
	}
}

func TestWhoIsPermittedIsNamedByRealServers(t *testing.T) {
	s, root := onEnsemble(t)
	t.Cleanup(func() { removeTree(t, s, root, digest("ann:secret")) })
	whoIsPermittedIsNamed(t, s, root)
}

// whoIsPermittedIsNamed has ann make directories, and others meet them.
func whoIsPermittedIsNamed(t *testing.T, s *stage, root string) {
	ann := connectAs(t, s, root, "ann:secret", owned, seen)
	require.NoError(t, ann.MakeDirs(t.Context(), "/lockstep/locks/deploy"))
	const has = " has digest:ann: all; world:anyone: read"

	code, _, errs := s.run("lock", "deploy", "--", "true")
	require.Equal(t, 77, code)
	require.Contains(t, errs, "no permission; the ACL of /lockstep/locks/deploy"+has+"\n")
	require.Contains(t, errs, "lockstep connected without credentials: give credentials in LOCKSTEP_AUTH_FILE")
	for _, line := range []string{"gate raise /lockstep/new/gate", "lock /lockstep/new -- true"} {
		code, _, errs = s.run(strings.Fields(line)...)
		require.Equal(t, 77, code, line)
		require.Contains(t, errs, "; the ACL of /lockstep"+has+"\n", "%s: the directory of the one that is not there",
			line)
	}
	code, _, errs = s.run("config", "set", "/lockstep", "1")
	require.Equal(t, 77, code)
	require.Contains(t, errs, "; the ACL of /lockstep"+has+"\n")

	code, wrong, all := s.diagnose()
	require.Equal(t, 1, code)
	text := strings.Join(wrong, "\n")
	require.Contains(t, text,
		"access: no permission to create and delete below /lockstep, without credentials; its ACL"+has)
	require.Contains(t, text,
		"acl: /lockstep/locks: no permission to create, delete in it, without credentials; its ACL"+has)
	require.Contains(t, all, "present digest:ann (")
	require.NotContains(t, all, "=", "no hash is shown")
	_, wrong, _ = s.withAuth("ann:guess").diagnose()
	require.Contains(t, strings.Join(wrong, "\n"),
		"acl: /lockstep/locks: no permission to create, delete in it, with the credentials digest:ann; its ACL"+has)

	require.Equal(t, []string{"ok"}, s.withAuth("ann:secret").findings("acl"), "others may look")
	require.NoError(t, connectAs(t, s, root, "ann:secret", owned, opened).MakeDirs(t.Context(), "/open/below/it"))
	require.Equal(t, []string{
		"/open and another directory: everybody may delete the nodes in it, write its data, change its ACL; its ACL " +
			"has digest:ann: all; world:anyone: all"},
		s.withAuth("ann:secret").findings("acl", "/open"))
	require.Equal(t, []string{"ok"}, s.findings("acl", "/open"), "who comes without credentials has nothing to protect")

	ours := framework.ACL{Perms: framework.PermDelete, Scheme: "auth"}
	require.NoError(t, connectAs(t, s, root, "ann:secret", ours, seen).MakeDirs(t.Context(), "/fixed"))
	require.Equal(t, []string{"/fixed: nobody may create in it; its ACL has digest:ann: delete; world:anyone: read"},
		s.withAuth("ann:secret").findings("acl", "/fixed"))
}

// findings are the texts of one of doctor's checks: what is wrong, "ok", or a warning.
func (s *stage) findings(check string, args ...string) (found []string) {
	s.t.Helper()
	_, out, _ := s.run(append([]string{"doctor", "--json"}, args...)...)
	for line := range strings.Lines(out) {
		switch one := decode(s.t, line); {
		case one["check"] != check:
		case one["warning"] == true:
			require.Equal(s.t, true, one["ok"])
			require.NotEmpty(s.t, one["advice"])
			found = append(found, "warning: "+one["text"].(string))
		case one["ok"] == true:
			found = append(found, "ok")
		default:
			found = append(found, one["text"].(string))
		}
	}
	return found
}

// TestTheRootIsOpenOutOfTheBox: whoever comes with credentials is told what they do not protect. A
// script that waits for healthy servers goes on all the same.
func TestTheRootIsOpenOutOfTheBox(t *testing.T) {
	s := newStage(t).withAuth("ann:secret")
	want := []string{"warning: /: everybody may delete the nodes in it, write its data, change its ACL; its ACL has " +
		"world:anyone: all", "ok"}
	require.Equal(t, want, s.findings("acl"))
	require.Equal(t, want, s.findings("acl", "/"), "the servers' own directories are left out")
	_, out, _ := s.run("doctor")
	require.Contains(t, out, "warn  acl         /: everybody may")
	require.Contains(t, out, "or give all clients a --root of their own")
	code, wrong, all := s.diagnose()
	require.Zero(t, code, all)
	require.Empty(t, wrong)
	code, wrong, all = s.diagnose("--strict")
	require.Equal(t, 1, code, all)
	require.Empty(t, wrong)

	ann := connectAs(t, s, "/", "ann:secret", opened)
	require.NoError(t, ann.Create(t.Context(), "/app", nil, framework.Persistent))
	code, wrong, all = s.diagnose("--root", "/app")
	require.Equal(t, 1, code, all)
	require.Len(t, wrong, 1, "the root of its clients is for Lockstep to protect")
}
