package ui_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/ui"
	"github.com/lockstep-go/lockstep/workflow"
)

// hostileTexts may be names, and what applications and foreign programs write.
var hostileTexts = []string{
	hostile, "", ".", "..", "a/../b", "%2e%2e%2f", "?a=b&c=d#e", " ", "\t\r\n", "\x00\x1b[2J\x7f\u009b31m\x07",
	"\xff\xfe\xf0\x28\x8c", "\u202egnp.exe\u2066\u2069\u200f\u2028\ufeff", `</title></script></style></textarea>-->`,
	`<!--`, `<![CDATA[`, `]]>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, "`${alert(1)}`", `{{.}}`,
	`javascript:alert(1)`, `//evil.example/`, `&lt;script&gt;&#0;&#x202e;`, `\u003cscript\u003e`, "\U000e0001\U0001f9d1",
	"a\u0300\u0301\u0302\u0303\u0304\u0305", strings.Repeat("very long ", 3000), strings.Repeat("\u202e", 200),
}

// pathPart is what ZooKeeper permits of a text as a part of a path.
func pathPart(text string) string {
	part := strings.Map(func(r rune) rune {
		if r == '/' || framework.ValidatePath("/x"+string(r)) != nil {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	part = cut(part, 150)
	if part == "" || framework.ValidatePath("/"+part) != nil {
		return "x" + part
	}
	return part
}

// storable is what applications may write of a text: UTF-8, and not too long.
func storable(text string) string {
	if text = cut(strings.ToValidUTF8(text, "\ufffd"), 250); text == "" {
		return " "
	}
	return text
}

// runName is what a workflow's run, kind, step or signal may have of a path's part as its name.
func runName(part string) string {
	return cut("x"+strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, part), 100)
}

func cut(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// fillAll makes what fill makes, and more: also nodes of foreign programs that hold any bytes.
func fillAll(t *testing.T, s *stage, name, text string) {
	t.Helper()
	part, stored := pathPart(name), storable(text)
	fillWith(t, s, part, stored)
	client := s.member(t, "more", stored)
	ctx, cancel := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	t.Cleanup(func() { cancel(); tasks.Wait() })
	tasks.Go(func() { _, _ = barrier.NewDoubleBarrier(client, "/barriers/"+part, 3).Enter(ctx) })
	require.NoError(t, barrier.NewGate(client, "/gates/"+part).Raise(ctx))
	require.NoError(t, barrier.NewLatch(client, "/latches/"+part, 3).CountDown(ctx, part))

	q := queue.New(client, "/queues/more-"+part, codec.Bytes(), queue.WithMaxAttempts(1))
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	for range 2 { // one is given up, the other is in flight
		require.NoError(t, q.Put(ctx, []byte(text), queue.WithHeaders(map[string]string{"k": stored})))
	}
	given, err := q.Take(ctx)
	require.NoError(t, err)
	require.NoError(t, given.Nack(ctx, 0, errors.New(text)))
	_, err = q.Take(ctx)
	require.NoError(t, err)

	named := runName(part)
	flows := workflow.New(client, "/flows")
	t.Cleanup(func() { _ = flows.Close(context.Background()) })
	kind := workflow.NewKind[string, string](named)
	one := func(context.Context, workflow.Key) (string, error) { return text, nil }
	work := func(ctx context.Context, run *workflow.Run, _ string) (string, error) {
		_, err := workflow.Step(ctx, run, named, one)
		return "", errors.Join(err, workflow.Permanent(errors.New(text)))
	}
	require.NoError(t, flows.Register(kind.Function(work)))
	_, err = kind.Start(ctx, flows, named, text)
	require.NoError(t, err)
	_, err = kind.Start(ctx, flows, "waits-"+named, text, workflow.WithSignal(named, stored))
	require.NoError(t, err)
	tasks.Go(func() { _ = flows.Work(ctx) })
	require.Eventually(t, func() bool {
		run, err := flows.Inspect(ctx, named)
		return err == nil && run.State.IsFinished()
	}, wait, tick)

	foreign, contender := "/foreign-"+part, "/_c_00000000-0000-0000-0000-000000000001-"
	for path, mode := range map[string]framework.Mode{
		"/locks" + foreign + contender + "lock-0000000001":      framework.Ephemeral,
		"/locks" + foreign + contender + "lock-0000000002":      framework.Ephemeral,
		"/elections" + foreign + contender + "latch-0000000001": framework.Ephemeral,
		"/services/" + part + foreign:                           framework.Ephemeral,
		"/queues" + foreign + "/items/0000000000/i-0000000000":  framework.Persistent,
		"/queues" + foreign + "/tickets/items/0000000000":       framework.Persistent,
		"/queues" + foreign + "/dead/0000000000/i-0000000000":   framework.Persistent,
		"/jobs/jobs" + foreign:                                  framework.Persistent,
		"/config/" + part + "~past/0000000009":                  framework.Persistent,
	} {
		require.NoError(t, client.MakeDirs(ctx, path[:strings.LastIndexByte(path, '/')]))
		require.NoError(t, client.CreateIfMissing(ctx, path, []byte(text), mode), path)
	}
}

// document is what a page consists of, as a parser sees it.
type document struct {
	shape map[string]bool // elements, and their attributes as "a@href"
	links []string
}

// parse reads a page, whose elements must be closed in their order and whose texts must be
// printable.
func parse(t *testing.T, target, body string) document {
	t.Helper()
	d := document{shape: map[string]bool{}}
	printable := func(text string) {
		at := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
		require.Equal(t, -1, at, "%s: %q", target, text)
	}
	decoder := xml.NewDecoder(strings.NewReader(body))
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return d
		}
		require.NoError(t, err, "%s: %s", target, body)
		switch token := token.(type) {
		case xml.CharData:
			printable(string(token))
		case xml.StartElement:
			d.shape[token.Name.Local] = true
			for _, a := range token.Attr {
				printable(a.Value)
				d.shape[token.Name.Local+"@"+a.Name.Local] = true
				switch a.Name.Local {
				case "href", "src", "action":
					require.NotRegexp(t, `^\s*(/|[A-Za-z][-+.A-Za-z0-9]*:)`, a.Value, "%s: links are relative", target)
				}
				if a.Name.Local == "href" && token.Name.Local == "a" {
					d.links = append(d.links, a.Value)
				}
			}
		case xml.Comment, xml.ProcInst:
			require.Fail(t, "no template has that", "%s: %v", target, token)
		}
	}
}

// visitAll fetches the pages of what fillAll has made, their JSON, and each page to which they
// link.
func visitAll(t *testing.T, s *stage, name string) map[string]bool {
	t.Helper()
	q := url.QueryEscape
	part, run := pathPart(name), q(runName(pathPart(name)))
	made := targets(part)
	all := append(made[:len(made)-1], // the last confirms a signal to another run
		"lock?path="+q("/locks/foreign-"+part), "election?path="+q("/elections/foreign-"+part),
		"queue?path="+q("/queues/more-"+part), "queue?path="+q("/queues/foreign-"+part),
		"workflow?path=/flows&id="+run, "workflow?path=/flows&id=waits-"+run,
		"confirm?do=signal&seen=x&path=/flows&node="+run, "search?q="+q(name), "locks?q="+q(name)+"&sort=lock",
		"nothing?q="+q(name), "lock?path="+q("/none/"+part), "session?id="+q(name))
	shape, seen := map[string]bool{}, map[string]bool{}
	for i, asked := 0, len(all); i < len(all); i++ {
		target, _, _ := strings.Cut(all[i], "#")
		if seen[target] {
			continue
		}
		seen[target] = true
		r := s.get(t, target)
		body := text(t, r)
		found := r.StatusCode == http.StatusOK
		require.True(t, found || i < asked && r.StatusCode == http.StatusNotFound, "%d for %q: %s", r.StatusCode,
			target, body)
		page, _, _ := strings.Cut(target, "?")
		if strings.HasSuffix(page, ".json") {
			require.True(t, json.Valid([]byte(body)), "%s: %s", target, body)
			at := strings.IndexFunc(body, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
			require.Equal(t, -1, at, "%s: %q", target, body)
			continue
		}
		d := parse(t, target, body)
		maps.Copy(shape, d.shape)
		checkBalance(t, body)
		for _, link := range d.links {
			switch {
			case strings.HasPrefix(link, "#"), strings.HasPrefix(link, "confirm.json"),
				!found && strings.Contains(link, ".json"):
			case strings.HasPrefix(link, "?"):
				all = append(all, page+link)
			default:
				all = append(all, strings.TrimPrefix(link, "./"))
			}
		}
	}
	return shape
}

// plainShape is what pages of harmless names consist of.
var plainShape map[string]bool

// FuzzNames has a name wherever a name can appear, and a text wherever anybody can write one. Each
// page consists of the elements and attributes that it has with harmless ones, its texts and its
// JSON are printable, and each of its links leads to a page.
func FuzzNames(f *testing.F) {
	for i, text := range hostileTexts {
		if testing.Short() && i%4 != 0 {
			continue
		}
		f.Add(text, hostileTexts[(i+7)%len(hostileTexts)])
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible
	runes := []rune("<>\"'&;:/\\?#%= \n\t\x00\x1b\u0085\u200b\u202e\u2028\ufffd\ufffeabc\U0001f600\U000e0001-.")
	many := 10
	if testing.Short() {
		many = 2
	}
	for range many {
		var text strings.Builder
		for range random.IntN(60) {
			text.WriteRune(runes[random.IntN(len(runes))])
		}
		f.Add(text.String(), text.String()+"\xff")
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		if plainShape == nil {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, ui.WithActions())
				fillAll(t, s, "one", "text")
				plainShape = visitAll(t, s, "one")
				plainShape["span@class"] = true // marks an escaped rune
			})
		}
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, ui.WithActions())
			fillAll(t, s, name, text)
			for part := range visitAll(t, s, name) {
				require.True(t, plainShape[part], "%s is not in pages of harmless names: %v", part,
					slices.Sorted(maps.Keys(plainShape)))
			}
		})
	})
}
