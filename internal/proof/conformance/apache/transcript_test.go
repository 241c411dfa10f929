package apache

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/proof/conformance"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/zksetting"
	"github.com/lockstep-go/lockstep/zktest"
)

// record writes the real server's answers to testdata, for tests without a real server:
//
//	go test ./internal/proof/conformance/apache -run TestMemoryAnswersAsApacheDoes -record
var record = flag.Bool("record", false, "write the real server's answers to testdata")

const (
	tick           = 500 * time.Millisecond
	containerCheck = 200 * time.Millisecond
)

// TestMemoryAnswersAsApacheDoes compares every answer of a long raw conversation, for each setting
// of the servers.
func TestMemoryAnswersAsApacheDoes(t *testing.T) {
	for _, setting := range conformance.Settings {
		t.Run(setting.Name, func(t *testing.T) {
			apache := ensemble.Private(t,
				ensemble.Config{Servers: 1, Tick: tick, ContainerCheck: containerCheck, NoFsync: true,
					Properties: setting.Properties, Lines: setting.Lines})
			options := []zktest.Option{zktest.WithTick(tick), zktest.WithContainerInterval(containerCheck)}
			setting.Each(func(name, value string) { options = append(options, zksetting.Option(name, value)) })
			memory := zktest.Start(t, options...)
			addr, err := memory.ListenTCP("127.0.0.1:0")
			require.NoError(t, err)

			transcript := conformance.Transcript(t, apache.Addr(0), setting)
			if setting.Recorded != "" && *record {
				file := filepath.Join("..", "testdata", setting.Recorded)
				require.NoError(t, os.WriteFile(file, []byte(strings.Join(transcript, "\n")+"\n"), 0o644))
			}
			want := topics(transcript)
			got := topics(conformance.Transcript(t, addr, setting))
			require.Equal(t, len(want), len(got))
			lines := 0
			for i, topic := range want {
				lines += len(topic)
				compare(t, topic, got[i])
			}
			t.Logf("%d answers compared", lines)
		})
	}
}

// topics splits a transcript at the beginning of each topic, so that an additional line in one
// topic does not move the lines of the others.
func topics(lines []string) [][]string {
	var all [][]string
	for _, line := range lines {
		if strings.HasPrefix(line, "== ") {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], line)
	}
	return all
}

// maxShown is how many different lines of a topic are shown: an early difference can make all later
// lines different.
const maxShown = 12

func compare(t *testing.T, want, got []string) {
	t.Helper()
	shown := 0
	for i := range max(len(want), len(got)) {
		w, g := lineAt(want, i), lineAt(got, i)
		if w == g {
			continue
		}
		if shown++; shown > maxShown {
			t.Errorf("%s: and more", want[0])
			return
		}
		t.Errorf("%s, line %d (after %q)\n  Apache %s\n  memory %s", want[0], i, lineAt(want, i-1), w, g)
	}
}

func lineAt(lines []string, i int) string {
	if i < 0 || i >= len(lines) {
		return "(nothing)"
	}
	return lines[i]
}
