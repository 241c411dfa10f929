package locks

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestLargeDirectoriesAreNotListed(t *testing.T) {
	i := newInspection(nil, "/x") // nothing may be asked
	_, err := i.listChildren(t.Context(), "/x", framework.Stat{NumChildren: maxChildren + 1})
	require.ErrorIs(t, err, framework.ErrTooLarge)
	require.ErrorContains(t, err, "list /x: too large: 250001 children")
}

func TestFirstOfWrappedLine(t *testing.T) {
	line := parseLayout([]string{"b-__WRIT__-2147483648", "c-__READ__-2147483647",
		"a-__READ__2147483647"}).lines[ReadWriteLock]
	var h holderFilter
	var holds []bool
	for _, p := range line {
		holds = append(holds, h.admitsPosition(p))
	}
	require.Equal(t, []bool{true, false, false}, holds)
	require.Equal(t, "a-__READ__2147483647", line[0].Name)
}

func TestPermitsAreReadLeniently(t *testing.T) {
	for record, want := range map[string]int{
		`{"v":1,"declared":3,"permits":5}`: 5, `{"v":9,"permits":2,"new":true}`: 2, `{"permits":-1}`: 0,
		``: 0, `10.0.0.1`: 0, `{"permits":"many"}`: 0, `null`: 0, `[]`: 0,
	} {
		require.Equal(t, want, waitline.PermitsIn([]byte(record)), record)
	}
}

func TestSessionIDs(t *testing.T) {
	for n, text := range map[framework.SessionID]string{0: "0x0", 0x100000abc: "0x100000abc",
		-1: "0xffffffffffffffff"} {
		require.Equal(t, text, n.String())
		var back framework.SessionID
		require.NoError(t, back.UnmarshalText([]byte(text)))
		require.Equal(t, n, back)
	}
	var s framework.SessionID
	require.Error(t, s.UnmarshalText([]byte("0x1 ")))
	require.Error(t, s.UnmarshalText([]byte("session")))
}

// FuzzEntry describes nodes that anybody may have written.
func FuzzEntry(f *testing.F) {
	for _, data := range []string{
		"", "10.0.0.1", "__REVOKE__", "\xff\xfe", "null", "{}",
		`{"v":1,"owner":"a","host":"h","pid":7,"since":"2026-01-02T03:04:05Z"}`,
		`{"v":1,"owner":"a","since":"9999-12-31T23:59:59-23:59"}`, `{"v":1,"since":"0000-01-01T00:00:00+23:59"}`,
	} {
		f.Add([]byte(data), uint16(0), true)
		f.Add([]byte(data), uint16(maxExcerpt/2-1), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, pad uint16, candidate bool) {
		data = append([]byte(strings.Repeat("é", int(pad)%maxExcerpt)), data...)
		kind := MutexLock
		if candidate {
			kind = ElectionLock
		}
		stat := framework.Stat{Czxid: 5, Ctime: time.UnixMilli(1), EphemeralOwner: framework.SessionID(pad)}
		e := entryOf("/x", kind, data, stat)
		require.LessOrEqual(t, len(e.Data), maxExcerpt)
		require.LessOrEqual(t, len(e.Owner)+len(e.Host), 2*maxExcerpt)
		require.False(t, e.Foreign && (e.Owner != "" || e.Host != "" || e.PID != 0))
		require.False(t, e.Since.IsZero())
		text, err := json.Marshal(e)
		require.NoError(t, err, "every entry can be printed")
		var back Entry
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, e.Session, back.Session)
		waitline.PermitsIn(data)
	})
}

// FuzzSortOut sorts out names that anybody may have made.
func FuzzSortOut(f *testing.F) {
	f.Add("_c_a-lock-0000000001\n_c_b-__WRIT__0000000002\n_c_c-__READ__0000000002\nx__lock__-2147483648\n__rlock__+000000001\nlocks\nreadme")
	f.Add("-lock-0000000000\n__lock__\n__lock__0000000000\nlease-0000000000\nleases\npermits\n\n\n-latch-2147483647")
	f.Fuzz(func(t *testing.T, joined string) {
		names := strings.Split(joined, "\n")
		l := parseLayout(names)
		require.Equal(t, len(names), l.childCount()+len(l.parts)+len(l.others), "each is somewhere, once")
		for kind, line := range l.lines {
			var h holderFilter
			require.True(t, h.admitsPosition(line[0]), "the first of %s holds", kind)
			for _, p := range line[1:] {
				if kind == MutexLock && h.admitsPosition(p) {
					require.Equal(t, line[0].Seq, p.Seq)
				}
			}
		}
	})
}

func TestListReportsOmittedNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := zktest.Start(t).Member(t, "look", framework.Config{}).Client
		for _, path := range []string{"/a/1", "/a/2", "/a/3"} {
			_, err := NewMutex(client, path).Lock(t.Context())
			require.NoError(t, err)
		}
		var found []string
		var last error
		for r, err := range listUpTo(t.Context(), client, "/a", 3) {
			if last = err; err == nil {
				found = append(found, r.Path)
			}
		}
		require.Equal(t, []string{"/a/1", "/a/2"}, found)
		require.ErrorIs(t, last, framework.ErrTooLarge)
		require.ErrorContains(t, last, "there are more than 3 nodes; the search ended before /a/3")
	})
}

// TestALongQueueHidesNoLocks has more items than are looked at, and a lock behind them.
func TestALongQueueHidesNoLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := zktest.Start(t).Member(t, "look", framework.Config{})
		for _, path := range []string{"/jobs/items/0000000000", "/jobs/tickets", "/jobs/lanes/redo/0000000000",
			"/jobs/dead/0000000000", "/jobs/later/0000000000/0000000000"} {
			require.NoError(t, m.MakeDirs(t.Context(), path))
			var items []framework.Op
			for i := range 20 {
				items = append(items, framework.CreateOp(fmt.Sprintf("%s/i-%010d", path, i), nil, framework.Persistent))
			}
			_, err := m.Multi(t.Context(), items...)
			require.NoError(t, err)
		}
		_, err := NewMutex(m.Client, "/z").Lock(t.Context())
		require.NoError(t, err)
		var found []string
		for r, err := range listUpTo(t.Context(), m.Client, "/", 40) {
			require.NoError(t, err)
			found = append(found, r.Path)
		}
		require.Equal(t, []string{"/z"}, found)
	})
}
