package backgroundlog

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waitingHandler is a log's handler that waits until it is freed.
type waitingHandler struct {
	slog.Handler
	freed chan struct{}
}

func (h waitingHandler) Handle(ctx context.Context, r slog.Record) error {
	<-h.freed
	return h.Handler.Handle(ctx, r)
}

func (h waitingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return waitingHandler{h.Handler.WithAttrs(attrs), h.freed}
}

// TestRecordsThatWaitForAHandlerAreBounded. The handler is told how many were dropped, and decides
// which levels it wants.
func TestRecordsThatWaitForAHandlerAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logtest.Buffer
		h := waitingHandler{slog.NewTextHandler(&out, nil), make(chan struct{})}
		var b Log
		log := b.NewLogger(slog.New(h)).With("client", 7)
		log.Info("first")
		synctest.Wait()
		for i := range maxWaitingRecords + 5 {
			log.Info(fmt.Sprint("record ", i))
		}
		close(h.freed)
		synctest.Wait()
		log.Debug("not wanted")
		log.Info("last")
		<-b.Done()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Equal(t, 1+maxWaitingRecords+1+1, len(lines), lines[maxWaitingRecords:])
		require.Contains(t, lines[maxWaitingRecords], fmt.Sprintf(`msg="record %d" client=7`, maxWaitingRecords-1))
		require.Contains(t, lines[maxWaitingRecords+1], "dropped=5")
		require.Contains(t, lines[maxWaitingRecords+2], "msg=last client=7")
		log.Info("after the end")
		require.Empty(t, b.waiting)
	})
}
