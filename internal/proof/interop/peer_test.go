package interop

import (
	"context"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// startScript starts a shell script as a peer.
func startScript(t *testing.T, text string) *Peer {
	t.Helper()
	p, err := start("script", exec.Command("sh", "-c", text))
	require.NoError(t, err)
	return p
}

func TestPeerAnswersMatchRequests(t *testing.T) {
	p := startScript(t, `read one; read two; echo '{"id":2,"granted":true}'; echo '{"id":1,"error":"no: a stack trace"}'; cat`)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			a, err := p.Do(ctx, Command{Do: "acquire", Lock: "l"})
			if a.ID == 2 {
				assert.True(t, a.Granted)
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, "script, acquire l: no: a stack trace")
		})
	}
	wg.Wait()
	require.NoError(t, p.Close())
}

func TestPeerExitIsReported(t *testing.T) {
	p := startScript(t, `read one; echo out of memory >&2; exit 3`)
	_, err := p.Do(t.Context(), Command{Do: "acquire"})
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "out of memory")
	_, err = p.Do(t.Context(), Command{Do: "acquire"})
	require.Error(t, err)
	require.ErrorContains(t, p.Close(), "out of memory")
}

func TestMalformedPeerAnswerIsReported(t *testing.T) {
	for _, says := range []string{"hello", `{"id":7}`} {
		p := startScript(t, "read one; echo '"+says+"'; exec sleep 100")
		_, err := p.Do(t.Context(), Command{Do: "acquire"})
		require.ErrorContains(t, err, "signal: killed", says)
		require.Error(t, p.Close())
	}
}

func TestPeerRequestEndsWithItsContext(t *testing.T) {
	p := startScript(t, "cat >/dev/null")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := p.Do(ctx, Command{Do: "acquire"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, p.Close())
}

func TestPeerErrorsAreReturned(t *testing.T) {
	for trace, p := range map[string]*process{"at Locks.execute(Locks.java:": curator, "Traceback": kazoo} {
		t.Run(trace, func(t *testing.T) { // a missing library skips its own subtest
			_, err := p.get(t).Do(t.Context(), Command{Do: "nonsense"})
			require.ErrorContains(t, err, trace)
		})
	}
}

func TestMissingJavaIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	_, err := StartCurator(t.TempDir(), CuratorLocks)
	require.ErrorIs(t, err, ErrNotInstalled)
	require.ErrorContains(t, err, "apt-get install")
}
