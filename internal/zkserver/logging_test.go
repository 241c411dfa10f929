package zkserver

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// askingHandler asks the server for its state when it gets a record.
type askingHandler struct {
	slog.Handler
	server  *Server
	records *[]string
}

func (h askingHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

func (h askingHandler) Handle(_ context.Context, r slog.Record) error {
	h.server.Connections()
	r.Attrs(func(a slog.Attr) bool {
		*h.records = append(*h.records, r.Message+" "+a.Value.String())
		return false
	})
	return nil
}

// TestLogMayAskTheServer: the server hands over its records without its mutex, in their order, and
// all before Close returns.
func TestLogMayAskTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var records []string
		h := &askingHandler{records: &records}
		s, err := New(Config{Logger: slog.New(h)})
		require.NoError(t, err)
		h.server = s
		st := newTestClients(t, s)
		want := make([]string, 0, 10)
		for i := range 10 {
			session := st.joinFor(fmt.Sprint(i), time.Minute).session
			require.NoError(t, s.Expire(session))
			want = append(want, "session expired "+sessionName(session))
		}
		s.Close()
		require.Equal(t, want, records)
	})
}
