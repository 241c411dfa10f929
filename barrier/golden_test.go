package barrier_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
)

// goldenNodes are a double barrier with a round inside, and a latch that was counted once, as
// release 1 makes them.
const goldenNodes = `
/b persistent {"v":1,"kind":"double barrier","size":2,"in":"in-<uuid>"}
/b/in-<uuid> persistent
/b/in-<uuid>/m-0000000000 ephemeral {"v":1,"kind":"member","id":"<uuid>","owner":"<owner>"}
/b/in-<uuid>/m-0000000001 ephemeral {"v":1,"kind":"member","id":"<uuid>","owner":"<owner>"}
/b/round persistent {"v":1,"kind":"round","phase":1,"base":2,"numbers":[0,1]}
/l persistent {"v":1,"kind":"latch","size":3}
/l/at persistent
/l/at/c-0000000000 persistent one
/l/by persistent
/l/by/one persistent`

func TestTheNodesOfBarriersAndLatches(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ms := w.members(2)
		rounds := make(chan *barrier.Round, 2)
		for _, m := range ms {
			go func() {
				r, err := barrier.NewDoubleBarrier(m.Client, "/b", 2).Enter(t.Context())
				if err != nil {
					t.Error(err)
				}
				rounds <- r
			}()
		}
		first, second := <-rounds, <-rounds
		require.NoError(t, barrier.NewLatch(ms[0].Client, "/l", 3).CountDown(t.Context(), "one"))
		var lines []string
		for _, root := range []string{"/b", "/l"} {
			for _, n := range w.Tree(root) {
				lines = append(lines, strings.TrimSpace(fmt.Sprint(n.Path, " ", n.Mode, " ", string(n.Data))))
			}
		}
		got := strings.Join(lines, "\n")
		got = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).ReplaceAllString(got, `<uuid>`)
		got = regexp.MustCompile(`"owner":"[ab]"`).ReplaceAllString(got, `"owner":"<owner>"`)
		require.Equal(t, strings.TrimSpace(goldenNodes), got)
		go func() { _ = first.Leave(t.Context()) }()
		require.NoError(t, second.Leave(t.Context()))
		time.Sleep(time.Second)
	})
}
