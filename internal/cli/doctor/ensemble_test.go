package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/fourletter"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// TestDoctorOfThreeServers of which two are killed, one after the other, and start again. On a busy
// machine a server may need more than the three seconds for which doctor waits: then it asks again.
func TestDoctorOfThreeServers(t *testing.T) {
	e := ensemble.Private(t, ensemble.Config{NoFsync: true})
	var examine func() (wrong, all []string)
	examine = func() (wrong, all []string) {
		d := &diagnoses{take: func(check string, ok bool, text, _ string) {
			if all = append(all, check+": "+text); !ok {
				wrong = append(wrong, check+": "+text)
			}
		}}
		_, err := d.examineServers(t.Context(), framework.Config{Servers: e.Addrs()}, fourletter.Asker{})
		require.NoError(t, err)
		if slices.ContainsFunc(wrong, func(text string) bool { return strings.Contains(text, "no answer within 3s") }) {
			return examine()
		}
		return wrong, all
	}
	refused := func(i int) string { return "server: " + e.Addr(i) + ": connect: connection refused" }
	healthy := func() {
		require.NoError(t, e.Await(t.Context()))
		wrong, all := examine()
		require.Empty(t, wrong, all)
		require.Contains(t, all, "quorum: 1 leader, 2 followers, 0 observers reached")
	}
	healthy()
	leader, followers := e.Leader(), e.Followers()
	require.NoError(t, e.Kill(followers[0]))
	wrong, all := examine()
	require.ElementsMatch(t, []string{refused(followers[0]),
		"quorum: 2 servers of the ensemble were reached: when one more stops, there may be no quorum"}, wrong, all)

	require.NoError(t, e.Kill(followers[1]))
	require.Eventually(t, func() bool { return e.Mode(leader) == "" }, time.Minute, 10*time.Millisecond)
	wrong, all = examine()
	require.ElementsMatch(t, []string{refused(followers[0]), refused(followers[1]),
		"server: " + e.Addr(leader) + ": it answers, but serves no requests: it has no quorum"}, wrong, all)

	for _, i := range slices.Backward(followers) {
		require.NoError(t, e.Restart(i))
	}
	healthy()
}
