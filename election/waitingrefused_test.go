package election_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestUnreadableWaitingNodesAreSkipped: other programs and later releases put nodes below ~waiting.
func TestUnreadableWaitingNodesAreSkipped(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		private := config
		private.Auth, private.ACL = []framework.Credential{{Scheme: "digest", Auth: []byte("a:secret")}},
			framework.CreatorOnlyACL()
		stranger, other := w.Member(w.t, "stranger", private), w.member("other").client
		waiting := path + "~waiting"
		require.NoError(t, other.MakeDirs(t.Context(), waiting))
		require.NoError(t, stranger.Create(t.Context(), waiting+"/_c_0-p900", []byte(`{"v":1,"id":"x"}`),
			framework.Ephemeral))
		require.NoError(t, other.Create(t.Context(), waiting+"/_c_1-p900", []byte(`{"v":1,"id":7}`),
			framework.Ephemeral))
		require.NoError(t, other.Create(t.Context(), waiting+"/_c_2-transfer", []byte(`{"v":7}`), framework.Ephemeral))
		before := w.Children(waiting)

		var log logtest.Buffer
		a := election.New(w.Member(w.t, "a", config,
			framework.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))).Client, path)
		began, _ := reigns(t.Context(), a)
		got(t, began)
		b, _ := reigns(t.Context(),
			election.New(w.member("b").client, path, election.WithMetadata(map[string]string{"k": "b"})))
		own := slices.DeleteFunc(w.Children(waiting), func(name string) bool { return slices.Contains(before, name) })
		_, err := other.Set(t.Context(), znode.Join(waiting, own[0]), []byte(`{"v":7}`), framework.AnyVersion)
		require.NoError(t, err)
		c := election.New(w.member("c").client, path, election.WithPriority(5, time.Minute),
			election.WithMetadata(map[string]string{"k": "c"}))
		preferred, _ := reigns(t.Context(), c)
		all, err := a.Candidates(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "c"}, ids(t, a))
		require.Empty(t, all[1].Metadata)
		require.Equal(t, map[string]string{"k": "c"}, all[2].Metadata)
		require.Equal(t, 5, all[2].Priority)
		require.Equal(t, 4, strings.Count(log.String(), "is skipped"), "once for each node")

		came := time.Now()
		term := got(t, preferred)
		require.LessOrEqual(t, time.Since(came), time.Minute, "the priority counts")
		time.Sleep(time.Second) // b was passed over, and joins again
		require.NoError(t, w.member("operator").RequestTransfer(t.Context(), "b"))
		require.ErrorIs(t, term.Err(), election.ErrTransferred)
		got(t, b)
	})
}

// TestARefusedWaitingCandidateDescribesItselfLater: the quota permits the node below ~waiting only
// after a minute.
func TestARefusedWaitingCandidateDescribesItselfLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{zktest.Start(t, zktest.WithEnforcedQuotas()), t}
		operator := w.member("operator").client
		limitNodes(t, operator, "5") // /elections, the election, two candidates' nodes, the term's record
		began, _ := reigns(t.Context(), w.member("a").Election)
		term := got(t, began)
		var log logtest.Buffer
		b := election.New(w.Member(w.t, "b", config,
			framework.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))).Client, path, election.WithPriority(1, 0))
		preferred, _ := reigns(t.Context(), b)
		time.Sleep(time.Minute)
		require.NoError(t, term.Err())
		require.Equal(t, 1, strings.Count(log.String(), "cannot show its metadata and priority"))
		_, err := operator.Set(t.Context(), "/zookeeper/quota/elections/zookeeper_limits", []byte("countHardLimit=100"),
			framework.AnyVersion)
		require.NoError(t, err)
		raised := time.Now()
		require.NoError(t, got(t, preferred).Err())
		require.Less(t, time.Since(raised), 10*time.Second)
	})
}
