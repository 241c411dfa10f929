package hold

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// documentedTimeouts are the session timeouts of docs/timeouts.md.
var documentedTimeouts = []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, 40 * time.Second,
	time.Minute, 2 * time.Minute}

// TestTheTableOfTimeouts computes what docs/timeouts.md tells of each session timeout, and which
// one survives each interruption.
func TestTheTableOfTimeouts(t *testing.T) {
	page, err := os.ReadFile("../../../docs/timeouts.md")
	require.NoError(t, err)
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds()) }
	var rows []string
	for _, d := range documentedTimeouts {
		rows = append(rows, fmt.Sprintf("| %.0f s | %s | %s | %s | %s | %.0f |",
			d.Seconds(), seconds(survived(d)), seconds(survivedByCommand(t, d)),
			seconds(framework.Config{SessionTimeout: d, ObserverMasters: true}.LongestInterruption()), seconds(d/2),
			4000/d.Seconds()))
	}
	require.Contains(t, string(page), strings.Join(rows, "\n")+"\n")

	interruptions := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		var lasts int
		if len(cells) != 4 {
			continue
		}
		if _, err := fmt.Sscanf(cells[1], "%d s", &lasts); err != nil {
			continue
		}
		d := time.Duration(lasts) * time.Second
		require.Equal(t, leastTimeout(t, d, survived), cells[2], line)
		require.Equal(t, leastTimeout(t, d,
			func(timeout time.Duration) time.Duration { return survivedByCommand(t, timeout) }),
			strings.TrimSuffix(cells[3], " |\n"), line)
		interruptions++
	}
	require.Equal(t, 6, interruptions)
}

// leastTimeout is the least documented session timeout that survives an interruption.
func leastTimeout(t *testing.T, interruption time.Duration, survived func(time.Duration) time.Duration) string {
	for _, d := range documentedTimeouts {
		if survived(d) >= interruption {
			return fmt.Sprintf("%.0f s", d.Seconds())
		}
	}
	t.Errorf("no timeout survives %v", interruption)
	return ""
}

// survived is the longest interruption that ends no hold.
func survived(timeout time.Duration) time.Duration {
	return framework.Config{SessionTimeout: timeout}.LongestInterruption()
}

// survivedByCommand is the longest interruption that does not end a command.
func survivedByCommand(t *testing.T, timeout time.Duration) time.Duration {
	grace, err := (&Runner{}).killGrace(timeout)
	require.NoError(t, err)
	return survived(timeout) - grace
}
