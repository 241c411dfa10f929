//go:build unix

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/zktest"
)

// hostileName is what servers allow in a name and a terminal should not get: an override of the
// direction, a line separator, quotes, markup.
const hostileName = "x\u202ey\u2028z\"<b>\u200f"

// hostileData is what a node may hold: commands to a terminal, line ends, no text at all, and
// records of wrong kinds.
var hostileData = []string{
	"\x1b[31mred\x1b]0;title\x07\r\nsecond\u202eline\u2028",
	"\xff\xfe\x00\x1b[2J",
	`{"v":1,"kind":"gate","owner":"\u001b[31m\u202e","host":"\n\u009b","since":"2026-01-01T00:00:00Z"}`,
	`{"v":1,"recipe":"queue","order":"strict\u001b[2J","spec":"\u001b[2J* * * * *","zone":"\u202e","size":-1}`,
	`[[[[[[`,
	strings.Repeat("\x1b[5mA", 20_000),
}

// readingCommands are the command lines of commands that print what servers hold. raw marks those
// that print data as it is where no terminal is. A NAME is each hostile one in turn.
var readingCommands = map[string]struct {
	lines []string
	raw   bool
}{
	"locks": {lines: []string{"locks", "locks / --all", "locks NAME", "locks --deadlocks",
		"locks --owner x --sort age"}},
	"elections":      {lines: []string{"elections", "elections /", "elections NAME"}},
	"jobs":           {lines: []string{"jobs", "jobs NAME", "jobs --check", "jobs /lockstep/jobs/NAME"}},
	"runs":           {lines: []string{"runs NAME"}},
	"queue ls":       {lines: []string{"queue ls", "queue ls /"}},
	"queue len":      {lines: []string{"queue len NAME", "queue len mails"}},
	"queue peek":     {lines: []string{"queue peek NAME", "queue peek mails"}, raw: true},
	"queue dead":     {lines: []string{"queue dead NAME", "queue dead letters"}},
	"queue inflight": {lines: []string{"queue inflight NAME", "queue inflight mails"}},
	"config ls":      {lines: []string{"config ls", "config ls NAME"}},
	"config get":     {lines: []string{"config get NAME"}, raw: true},
	"config history": {lines: []string{"config history NAME"}},
	"config diff":    {lines: []string{"config diff NAME", "config diff kept"}},
	"services":       {lines: []string{"services", "services NAME"}},
	"members":        {lines: []string{"members", "members NAME"}},
	"check":          {lines: []string{"check", "check /lockstep/jobs"}},
	"clean": {lines: []string{"clean --older-than 0s", "clean / --older-than 0s",
		"clean -y --older-than 0s /lockstep/elections"}},
	"doctor": {lines: []string{"doctor"}},
	"top": {lines: []string{"top", "top / --view elections", "top --view jobs", "top / --view queues --once",
		"top / --view workflows", "top --filter x"}},
	"barriers": {lines: []string{"barriers", "barriers /", "barriers NAME"}},
	"gates":    {lines: []string{"gates", "gates /", "gates NAME"}},
	"latch ls": {lines: []string{"latch ls", "latch ls NAME"}},
	"workflows": {lines: []string{"workflows", "workflows /lockstep/workflows/NAME",
		"workflows /lockstep/workflows/NAME/victim", "workflows /lockstep/workflows/NAME/active"}},
	"version": {lines: []string{"version"}},
}

// otherCommands print no data that others have written, or are tested elsewhere for hostile data.
var otherCommands = []string{
	"lock", "elect", "cron", "dev", "barrier enter", "gate raise", "gate lower", "gate wait", "latch count",
	"latch wait", "latch reset", "jobs trigger", "jobs pause", "jobs resume", "jobs remove",
	"queue put", "queue take", "queue set", "queue cancel", "queue pause", "queue resume", "queue purge",
	"queue requeue", "queue return", "config set", "config edit", "config rollback",
	"config watch", "id next", "id worker", "register", "disable", "enable", "revoke", "release", "elections transfer",
	"man", "members cordon", "members uncordon", "members drain",
	"workflows start", "workflows cancel", "workflows retry", "workflows requeue", "workflows remove",
	"workflows signal",
	"ui",      // TestPagesEscapeNames of package ui
	"watch",   // TestWatchEscapesWhatOthersWrite
	"monitor", // TestMonitorPassesNothingHostileOn
}

// leafCommands are the commands that do something, below a command.
func leafCommands(cmd *cobra.Command) (paths []string) {
	for _, child := range cmd.Commands() {
		if child.Name() == "help" || child.Name() == "completion" {
			continue
		}
		if child.Runnable() && !(child.HasSubCommands() && child.Args != nil &&
			child.Args(child, []string{"NAME"}) != nil) {
			paths = append(paths, strings.TrimPrefix(child.CommandPath(), "lockstep "))
		}
		paths = append(paths, leafCommands(child)...)
	}
	return paths
}

func TestEachCommandIsKnownToReadOrNot(t *testing.T) {
	known := slices.Clone(otherCommands)
	for path := range readingCommands {
		known = append(known, path)
	}
	require.ElementsMatch(t, known, leafCommands(newRoot(ownStreams)),
		"a new command is to be in readingCommands if it prints what others have written, else in otherCommands")
}

// plantHostileNodes makes nodes in the layouts of all recipes, under hostile names and with hostile
// data, and returns the names.
func plantHostileNodes(t *testing.T, s *stage) (names []string) {
	c := client(t, s)
	ctx := t.Context()
	put := func(path, data string, mode framework.Mode) {
		if i := strings.LastIndexByte(path, '/'); i > 0 {
			require.NoError(t, c.MakeDirs(ctx, path[:i]))
		}
		err := c.Create(ctx, path, []byte(data), mode)
		if err != nil {
			_, err = c.Set(ctx, path, []byte(data), framework.AnyVersion)
		}
		require.NoError(t, err, "%q", path)
	}
	for i, data := range hostileData {
		name := fmt.Sprint(hostileName, i)
		names = append(names, name)
		for _, kind := range []string{"locks", "elections", "jobs", "queues", "barriers", "gates", "latches", "config",
			"ids", "services", "members"} {
			put("/lockstep/"+kind+"/"+name, data, framework.Persistent)
		}
		put("/lockstep/barriers/sized"+name,
			`{"v":1,"kind":"double barrier","size":2,"in":"in-6a0d1c9e-0c4e-4c62-9d7f-3b5a5b1c2d3e"}`,
			framework.Persistent)
		put("/lockstep/barriers/sized"+name+"/round", `{"v":1,"kind":"round"}`, framework.Persistent)
		put("/lockstep/barriers/sized"+name+"/in-6a0d1c9e-0c4e-4c62-9d7f-3b5a5b1c2d3e/m-0000000000", data,
			framework.Ephemeral)
		put("/lockstep/latches/sized"+name, `{"v":1,"kind":"latch","size":2}`, framework.Persistent)
		put("/lockstep/latches/sized"+name+"/at/x", data, framework.Persistent)
		put("/lockstep/latches/sized"+name+"/by/"+name, data, framework.Persistent)
		for n, child := range []string{"lock", "latch", "__READ__", "__WRIT__"} {
			dir := "/lockstep/locks/"
			if child == "latch" {
				dir = "/lockstep/elections/"
			}
			put(fmt.Sprintf("%s%s/_c_00000000-0000-0000-0000-00000000000%d-%s-000000000%d", dir, name, n, child, n),
				data, framework.Ephemeral)
		}
		put("/lockstep/elections/"+name+"~term", data, framework.Persistent)
		put("/lockstep/elections/"+name+"~waiting/_c_00000000-0000-0000-0000-000000000009-p5", data,
			framework.Ephemeral)
		put("/lockstep/locks/sem"+name+"/leases/_c_00000000-0000-0000-0000-000000000001-lease-0000000000", data,
			framework.Ephemeral)
		for _, child := range []string{"jobs/" + name, "changes", "members/00000000-" + name,
			"election/_c_00000000-0000-0000-0000-000000000001-latch-0000000000"} {
			put("/lockstep/jobs/"+name+"/"+child, data, framework.Persistent)
		}
		for _, child := range []string{"items/0000000000/i-0000000000", "tickets/items/0000000000",
			"dead/0000000000/i-0000000000", "later", "lanes", "paused"} {
			put("/lockstep/queues/"+name+"/"+child, data, framework.Persistent)
		}
		plantHostileRuns(put, name, data)
		put("/lockstep/services/"+name+"/"+name, data, framework.Ephemeral)
		put("/lockstep/members/"+name+"/_c_00000000-0000-0000-0000-000000000001-member-0000000000", data,
			framework.Ephemeral)
		put("/lockstep/config/"+name+"~history/0000000000", data, framework.Persistent)
	}
	return names
}

// plantHostileRuns makes workflows with runs that cannot be read, and with some that can, active,
// waiting and failed.
func plantHostileRuns(put func(path, data string, mode framework.Mode), name, data string) {
	const hostile = `\u001b[2J\n\u202e\u009b`
	path, kind := "/lockstep/workflows/"+name, strings.ReplaceAll(name, `"`, `\"`)
	put("/lockstep/workflows/runs/00/"+name, data, framework.Persistent)
	put(runNode(path, "unreadable"), data, framework.Persistent)
	for run, rest := range map[string]string{
		"victim": `"state":"waiting","failures":3,"waits":[{"signal":"` + hostile + `","until":1},{"child":"` +
			hostile + `"},{"retry":true}]`,
		name: `"state":"failed"`, "active": `"state":"active"`,
	} {
		put(runNode(path, run), `{"v":1,"kind":"run","id":"x","workflow":"`+kind+`","turn":1,"input":"`+"\xff\u202e"+
			`","error":"`+hostile+`","parent":{"run":"`+hostile+`"},`+rest+`}`,
			framework.Persistent)
		put(runNode(path, run)+"/step-"+name, `{"v":1,"result":"`+"\xff\u202e"+hostile+`","attempts":2}`,
			framework.Persistent)
		put(runNode(path, run)+"/step-graph:"+name,
			`{"v":1,"result":{"v":1,"kind":"graph","steps":[{"name":"b\"","after":["<b>"]},{"name":"<b>"}]},"attempts":1}`, framework.Persistent)
		put(runNode(path, run)+"/step-graph:bad", `{"v":1,"result":{"v":1,"kind":"graph","steps":[{"name":"`+hostile+
			`","after":["`+hostile+`"]}]},"attempts":1}`, framework.Persistent)
		put(runNode(path, run)+"/signal-"+name, data, framework.Persistent)
	}
	put(runNode(path, "active")+"/step-bad", data, framework.Persistent)
	put(path+"/queues/"+name+"/items/0000000000/i-0000000000", data, framework.Persistent)
	put(path+"/queues/"+name+"/tickets/items/0000000000/t-x-0000000000", data, framework.Ephemeral)
}

// runNode is the node of a run. The layout spreads runs over 256 directories.
func runNode(path, run string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(run))
	return fmt.Sprintf("%s/runs/%02x/%s", path, h.Sum32()%256, run)
}

// TestNothingHostileIsPrinted runs each command that reads, as people and as programs run it,
// against nodes that anybody may have made.
func TestNothingHostileIsPrinted(t *testing.T) {
	// it counts the nodes: none may be deleted for being empty
	s := newStage(t, zktest.WithContainerInterval(time.Hour))
	names := plantHostileNodes(t, s)
	putBinaryItems(t, s)
	s.ok("config", "set", "kept", "one")
	s.ok("config", "set", "kept", "two")
	before := len(s.zk.Tree("/"))
	var all sync.WaitGroup
	slots := make(chan struct{}, 4)
	for path, command := range readingCommands {
		for _, line := range command.lines {
			some := names
			if !strings.Contains(line, "NAME") {
				some = names[:1]
			}
			for _, name := range some {
				for _, asJSON := range []bool{false, true} {
					args := strings.Fields(line)
					for i, arg := range args {
						args[i] = strings.ReplaceAll(arg, "NAME", name)
					}
					if asJSON {
						args = append(args, "--json")
					}
					slots <- struct{}{}
					p := s.start(args...)
					all.Go(func() {
						defer func() { <-slots }()
						<-p.ended
						checkOutput(t, p, path, args, asJSON, command.raw)
					})
				}
			}
		}
	}
	all.Wait()
	require.Len(t, s.zk.Tree("/"), before, "they only read")
}

// putBinaryItems puts an item that is no text into a queue, and into another queue's dead letters.
func putBinaryItems(t *testing.T, s *stage) {
	for _, name := range []string{"mails", "letters"} {
		q := queue.New(client(t, s), "/lockstep/queues/"+name, codec.Bytes())
		require.NoError(t, q.Put(t.Context(), []byte(hostileData[1])))
		require.NoError(t, q.Close(t.Context()))
	}
	s.run("queue", "take", "letters", "--max-attempts", "1", "--", "false")
}

// checkOutput checks what a command has printed.
func checkOutput(t *testing.T, p *process, path string, args []string, asJSON, raw bool) {
	out, errs := read(p.out), read(p.err)
	if code := p.cmd.ProcessState.ExitCode(); code == 2 || code < 0 || code == cli.ExitUsage ||
		strings.Contains(errs, "goroutine ") {
		t.Errorf("%q: exit code %d: %s", args, code, errs)
	}
	for what, text := range map[string]string{"output": out, "errors": errs} {
		if what == "output" && raw && !asJSON {
			continue
		}
		i := strings.IndexFunc(text, func(r rune) bool {
			return r != '\n' && r != '\t' && r != utf8.RuneError &&
				cli.IsUnprintable(r)
		})
		if i >= 0 || !utf8.ValidString(text) {
			t.Errorf("%q: hostile %s: %q", args, what, text[max(0, i-20):min(len(text), max(0, i)+40)])
		}
	}
	if asJSON {
		for line := range strings.Lines(out) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: no JSON: %q", path, line)
			}
		}
	}
}

func TestAnElectionThatCannotBeReadLeavesTheOthers(t *testing.T) {
	s := newStage(t)
	plantHostileNodes(t, s)
	s.start("elect", "zz", "--", "sleep", "1000")
	s.queue("/lockstep/elections/zz", 1)
	code, out, errs := s.run("elections")
	require.Contains(t, out, "zz")
	require.Contains(t, errs, "record cannot be read")
	require.Equal(t, cli.ExitMismatch, code)
}

func TestJSONKeepsBinaryData(t *testing.T) {
	s := newStage(t)
	names := plantHostileNodes(t, s)
	c := client(t, s)
	require.NoError(t, c.MakeDirs(t.Context(), "/lockstep/elections/plain"))
	candidate := "/lockstep/elections/plain/_c_00000000-0000-0000-0000-000000000001-latch-0000000000"
	require.NoError(t, c.Create(t.Context(), candidate, []byte(hostileData[1]), framework.Ephemeral))
	exact := base64.StdEncoding.EncodeToString([]byte(hostileData[1]))
	putBinaryItems(t, s)
	for _, args := range [][]string{
		{"locks", names[1]}, {"elections", "plain"}, {"queue", "peek", "mails"}, {"queue", "dead", "letters"},
		{"config", "get", names[1]}, {"top", "--view", "elections"},
		{"top", "--view", "locks"},
	} {
		_, out, errs := s.run(append(args, "--json")...)
		require.Contains(t, out, exact, "%q: %s", args, errs)
	}
}

func TestWatchEscapesWhatOthersWrite(t *testing.T) {
	s := newStage(t)
	c := client(t, s)
	for _, asJSON := range []bool{false, true} {
		args := []string{"watch", fmt.Sprint("elections/", hostileName, asJSON)}
		if asJSON {
			args = append(args, "--json")
		}
		p := s.start(args...)
		s.line(p.err, 0)
		path := fmt.Sprint("/lockstep/elections/", hostileName, asJSON)
		for i, node := range []string{path, path + "~term", path + "~waiting", path + "/a" + hostileName} {
			if i == 0 {
				require.NoError(t, c.MakeDirs(t.Context(), path))
			} else {
				require.NoError(t, c.Create(t.Context(), node, []byte(hostileData[i%2]), framework.Persistent))
			}
			p.line(i)
		}
		p.signal(syscall.SIGTERM)
		require.Equal(t, 0, p.wait())
		checkOutput(t, p, "watch", args, asJSON, false)
		require.Contains(t, read(p.out), "~term", "what an election keeps beside itself")
		require.Contains(t, read(p.out), "~waiting")
	}
}
