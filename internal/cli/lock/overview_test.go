package lock

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// FuzzTables prints locks that anybody may have made: each takes one line, and no more.
func FuzzTables(f *testing.F) {
	f.Add("a", "10.0.0.1", "_c_1-lock-0000000001", int64(7), 3)
	f.Add("x\n\x1b[31m", "\xff", "lock\u2028name", int64(-1), -1)
	f.Add("", "", "", int64(0), 0)
	f.Add(strings.Repeat("日", 100), strings.Repeat("\t", 100), "/", int64(1), 1<<30)
	f.Fuzz(func(t *testing.T, owner, data, name string, session int64, n int) {
		e := locks.Entry{Node: "/x/" + name, Owner: owner, Host: data, PID: n, Data: data, Mode: "read",
			Session: framework.SessionID(session)}
		r := locks.Report{Path: "/x", Kind: locks.MixedLock, Holders: []locks.Entry{e}, Waiters: []locks.Entry{e, e},
			Others: []locks.Entry{e}, Permits: n}
		var list, one bytes.Buffer
		require.NoError(t, printLockOverview(&list, []locks.Report{r, r}, time.Now()))
		require.NoError(t, PrintDetail(&one, r, time.Now()))
		require.Equal(t, 3, strings.Count(list.String(), "\n"))
		require.Equal(t, 6, strings.Count(one.String(), "\n"))
		require.NotContains(t, list.String()+one.String(), "\x1b")
	})
}
