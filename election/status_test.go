package election_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

func probe(t *testing.T, h http.Handler, target string) (int, map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	var v map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &v))
	return w.Code, v
}

// electionStatus is the answer's only election.
func electionStatus(v map[string]any) map[string]any {
	return v["elections"].([]any)[0].(map[string]any)
}

func TestStatusTellsWhoLeads(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		sa, sb := election.NewStatus(a.client, a.Election), election.NewStatus(b.client, b.Election)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); sa.Run(ctx) }()
		go sb.Run(t.Context())
		synctest.Wait()
		code, v := probe(t, sa, "/")
		require.Equal(t, http.StatusOK, code, "nobody leads, but there is a session")
		require.Equal(t, map[string]any{"path": path, "id": "a", "leading": false, "leader": nil}, electionStatus(v))

		term := a.lead(t)
		require.NoError(t, term.Update(t.Context(), election.Metadata{"address": "a:1"}))
		synctest.Wait()
		for _, s := range []*election.Status{sa, sb} {
			code, v = probe(t, s, "/")
			require.Equal(t, http.StatusOK, code)
			require.Equal(t, "connected", v["session"])
			leader := electionStatus(v)["leader"].(map[string]any)
			require.Equal(t, "a", leader["id"])
			require.EqualValues(t, 1, leader["term"])
			require.EqualValues(t, term.Token(), leader["token"])
			require.Equal(t, map[string]any{"address": "a:1"}, leader["metadata"])
			require.Equal(t, s == sa, electionStatus(v)["leading"])
		}
		for target, want := range map[string]int{"/?leading=" + path: 200, "/?leading": 503, "/?leading=/other": 503} {
			code, _ = probe(t, sa, target)
			require.Equal(t, want, code, target)
		}
		code, _ = probe(t, sb, "/?leading="+path)
		require.Equal(t, http.StatusServiceUnavailable, code)

		before := w.Requests()
		for range 100 {
			probe(t, sa, "/")
		}
		require.Equal(t, before, w.Requests())
		cancel()
		<-ended
	})
}

func TestStatusFollowsTheSession(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		s := election.NewStatus(a.client, a.Election)
		go s.Run(t.Context())
		a.lead(t)
		_, v := probe(t, s, "/")
		require.NotContains(t, v, "servers", "it is connected")
		a.link.Cut()
		time.Sleep(time.Second)
		code, v := probe(t, s, "/?leading="+path)
		require.Equal(t, http.StatusOK, code, "its lease stands")
		require.Equal(t, "suspended", v["session"])
		known := a.client.Status().Servers
		servers := v["servers"].([]any)
		require.Len(t, servers, len(known))
		require.Error(t, known[0].Err)
		require.Equal(t, map[string]any{"server": known[0].Server, "error": known[0].Err.Error()}, servers[0])
		time.Sleep(timeout)
		code, v = probe(t, s, "/")
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Equal(t, "none", v["session"])
		require.Equal(t, false, electionStatus(v)["leading"])
		a.link.Heal()
		time.Sleep(timeout)
		code, v = probe(t, s, "/")
		require.Equal(t, http.StatusOK, code)
		require.NotContains(t, v, "servers")
		require.Nil(t, electionStatus(v)["leader"])
	})
}

func TestStatusShowsWhatIsWrong(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		require.NoError(t, a.lead(t).Resign(t.Context()))
		_, err := a.client.Set(t.Context(), path+"~term", []byte("x"), framework.AnyVersion)
		require.NoError(t, err)
		require.NoError(t, a.client.Create(t.Context(), path+"/_c_0-latch-0000000009", []byte("java"),
			framework.Ephemeral))
		s := election.NewStatus(a.client, a.Election, election.New(a.client, "bad"))
		go s.Run(t.Context())
		synctest.Wait()
		_, v := probe(t, s, "/")
		require.Contains(t, electionStatus(v)["error"], "cannot be read")
		require.Contains(t, v["elections"].([]any)[1].(map[string]any)["error"], "invalid path")
		require.NoError(t, a.client.Delete(t.Context(), path+"~term", framework.AnyVersion))
		time.Sleep(time.Minute)
		_, v = probe(t, s, "/")
		require.NotContains(t, electionStatus(v), "error")
		require.Equal(t, "java", electionStatus(v)["leader"].(map[string]any)["id"])
	})
}

func TestStatusOfNoElections(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		_, err := a.client.Session(t.Context())
		require.NoError(t, err)
		code, v := probe(t, election.NewStatus(a.client), "/")
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, map[string]any{"session": "connected", "elections": []any{}}, v)
	})
}

func TestStatusWithoutAClient(t *testing.T) {
	code, v := probe(t, election.NewStatus(nil, election.New(nil, path)), "/")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "none", v["session"])
}

func TestStatusTakesNoOtherMethod(t *testing.T) {
	w := httptest.NewRecorder()
	election.NewStatus(nil).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
}
