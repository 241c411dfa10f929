package framework

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

func encoded(f func(*wire.Encoder)) []byte {
	var e wire.Encoder
	f(&e)
	return e.Bytes()
}

func TestARefusedTransactionNamesItsOperation(t *testing.T) {
	body := encoded(func(e *wire.Encoder) {
		for _, code := range []wire.Code{wire.OK, wire.BadVersion, wire.RuntimeInconsistency} {
			wire.MultiHeader{Op: wire.OpError, Err: code}.Encode(e)
			e.Int(int32(code))
		}
		wire.MultiEnd.Encode(e)
	})
	o := decodeAnswer(link.Reply{Body: body}, decodeResults)
	require.NoError(t, o.err)
	require.Len(t, o.v, 3)
	require.NoError(t, o.v[0].Err)
	require.ErrorIs(t, resultsError(o.v, len(o.v)), ErrBadVersion)
	tx := firstRefused([]Op{CheckOp("/a", 0), DeleteOp("/b", 4), DeleteOp("/c", 0)}, o.v)
	require.Equal(t, &TxError{Index: 1, Op: "delete", Path: "/b", Err: ErrBadVersion}, tx)
}

// TestAnAnswerThatIsNotWholeHasNoResults: a heartbeat and a sync take results for an answer of the
// ensemble.
func TestAnAnswerThatIsNotWholeHasNoResults(t *testing.T) {
	whole := encoded(func(e *wire.Encoder) {
		for range 2 {
			wire.MultiHeader{Op: wire.OpError, Err: wire.NoNode}.Encode(e)
			e.Int(int32(wire.NoNode))
		}
		wire.MultiEnd.Encode(e)
	})
	for n := range len(whole) {
		o := decodeAnswer(link.Reply{Body: whole[:n]}, decodeResults)
		require.Empty(t, o.v, n)
		require.ErrorIs(t, errorUnlessOrdered(o.v, o.err), wire.ErrMalformed, n)
	}
}

// TestARefusalOfAnEndedSessionIsNoProof: the servers order the refusal of a transaction whose
// session has expired, too. It must not begin a lease.
func TestARefusalOfAnEndedSessionIsNoProof(t *testing.T) {
	for code, proves := range map[wire.Code]bool{wire.NoNode: true, wire.NoAuth: true, wire.SessionExpired: false,
		wire.SessionMoved: false} {
		rs := []OpResult{{}, {Err: codeError(code)}}
		err := errorUnlessOrdered(rs, resultsError(rs, len(rs)))
		require.Equal(t, proves, err == nil, code)
	}
	require.Error(t, errorUnlessOrdered([]OpResult{{}}, resultsError([]OpResult{{}}, 2)), "no operation was refused")
}

// TestAnAnswerThatLacksResultsIsNoSuccess: callers look up the results of their operations.
func TestAnAnswerThatLacksResultsIsNoSuccess(t *testing.T) {
	require.NoError(t, resultsError([]OpResult{{Path: "/a"}, {}}, 2))
	require.ErrorContains(t, resultsError([]OpResult{{Path: "/a"}}, 2), "1 results of a transaction of 2 operations")
}

func TestAnAnswersErrors(t *testing.T) {
	for _, c := range []struct {
		reply link.Reply
		want  error
	}{
		{link.Reply{Err: link.ErrDown}, ErrSuspended},
		{link.Reply{Err: link.ErrTooLong}, ErrTooLarge},
		{link.Reply{Code: wire.NoNode}, ErrNoNode},
		{link.Reply{Code: wire.SessionMoved}, ErrSuspended},
		{link.Reply{Body: []byte{0, 0, 0}}, wire.ErrMalformed},
	} {
		require.ErrorIs(t, decodeAnswer(c.reply, decodeNames).err, c.want)
	}
	require.ErrorContains(t, decodeAnswer(link.Reply{Code: wire.Unimplemented}, decodeNames).err, "unimplemented")
}

// FuzzAnswers reads a server's bytes as each kind of answer: nothing panics, and nothing that the
// bytes do not hold is made room for.
func FuzzAnswers(f *testing.F) {
	f.Add(encoded(func(e *wire.Encoder) { e.Strings([]string{"a", "b"}); new(wire.Stat).Encode(e) }))
	f.Add(encoded(func(e *wire.Encoder) { e.Buffer([]byte("data")); new(wire.Stat).Encode(e) }))
	f.Add(encoded(func(e *wire.Encoder) {
		wire.MultiHeader{Op: wire.OpCreate}.Encode(e)
		e.String("/a")
		wire.MultiHeader{Op: wire.OpSetData}.Encode(e)
		new(wire.Stat).Encode(e)
		wire.MultiHeader{Op: wire.OpDelete}.Encode(e)
		wire.MultiEnd.Encode(e)
	}))
	f.Add(encoded(func(e *wire.Encoder) { e.ACLs(wire.WorldACL(wire.PermAll)); new(wire.Stat).Encode(e) }))
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := link.Reply{Body: b}
		require.LessOrEqual(t, len(decodeAnswer(r, decodeACL).v.acl), len(b)/12)
		require.LessOrEqual(t, len(decodeAnswer(r, decodeData).v.data), len(b))
		require.LessOrEqual(t, len(decodeAnswer(r, decodeNames).v.names), len(b)/4)
		require.LessOrEqual(t, len(decodeAnswer(r, decodeResults).v), len(b)/9)
		require.LessOrEqual(t, len(decodeAnswer(r, decodePath).v), len(b))
		decodeAnswer(r, decodeStatOnly)
		_, _ = createdPaths([]Op{CreateOp("/a", nil, Ephemeral)}, decodeAnswer(r, decodeResults).v, 1)
	})
}

// TestTimesOfNodesCanBeEncoded, also those of servers whose clocks are wrong.
func TestTimesOfNodesCanBeEncoded(t *testing.T) {
	for _, ms := range []int64{math.MinInt64, -1, 0, math.MaxInt64} {
		d := wire.NewDecoder(encoded((&wire.Stat{Ctime: ms, Mtime: ms}).Encode))
		stat := decodeStat(&d)
		_, err := json.Marshal([]time.Time{stat.Ctime, stat.Mtime, stat.Mtime.UTC()})
		require.NoError(t, err, ms)
	}
}
