package usercode_test

import (
	"bytes"
	"errors"
	"log/slog"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/internal/usercode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEachEndOfAFunction(t *testing.T) {
	own := errors.New("no disk")
	panicked := errors.New("job panicked")
	for name, c := range map[string]struct {
		f      func() error
		is     error
		says   string
		logged bool
	}{
		"returns": {f: func() error { return nil }},
		"fails":   {f: func() error { return own }, is: own, says: "no disk"},
		"panics":  {f: func() error { panic("oops") }, is: panicked, says: "job panicked: oops", logged: true},
		"panics with an error": {
			f: func() error { var none *slog.Record; none.Level = 1; return nil }, is: panicked,
			says: "job panicked: runtime error: invalid memory address or nil pointer dereference", logged: true,
		},
		"panics with nil": {
			f: func() error { panic(nil) }, is: panicked, says: "job panicked: panic called with nil argument",
			logged: true,
		},
		"ends its goroutine": {
			f: func() error { runtime.Goexit(); return nil }, is: panicked,
			says: "job panicked: it has ended its goroutine (runtime.Goexit)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := usercode.Call(slog.New(slog.NewTextHandler(&out, nil)), panicked, "a job",
				[]any{"path", "/jobs/often"}, c.f)
			if c.is == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.is)
				require.EqualError(t, err, c.says)
			}
			if !c.logged {
				require.Empty(t, out.String())
				return
			}
			require.Contains(t, out.String(), `msg="a job panicked" path=/jobs/often panic=`)
			require.Contains(t, out.String(), "usercode_test.go", "the stack")
		})
	}
}

func TestTryReturnsWhatTheFunctionReturnsOrItsPanic(t *testing.T) {
	refused := errors.New("refused")
	require.NoError(t, usercode.Try(func() error { return nil }))
	require.ErrorIs(t, usercode.Try(func() error { return refused }), refused)
	require.EqualError(t, usercode.Try(func() error { panic("no such field") }), "panic: no such field")
}
