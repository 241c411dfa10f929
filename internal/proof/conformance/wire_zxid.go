package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// wireZxid has the behaviours that make zxids from reply headers usable as fencing
// tokens.
var wireZxid = []behaviour{
	{"a create's header carries the node's czxid under load", createHeaderIsCzxid},
	{"a multi's header carries its nodes' czxid under load", multiHeaderIsCzxid},
	{"a set's header carries the node's mzxid under load", setHeaderIsMzxid},
	{"a delete's header carries its parent's pzxid under load", deleteHeaderIsPzxid},
	{"zxids rise with sequence numbers", zxidsRiseWithSequence},
}

const (
	writersPerServer = 4
	writesPerWriter  = 200
	inFlight         = 10 // requests that a writer has on the wire at once
)

// token has the zxids of one write.
type token struct {
	path         string
	header, stat int64 // zxids
	made         int64 // the zxid that had created what a delete deleted
}

// underLoad lets several sessions on every server write concurrently, each with several requests in
// flight, and returns what read returns for each reply. Other sessions open and close meanwhile,
// because these are transactions, too.
func (s *fixture) underLoad(t *testing.T, request func(p *peer) int32, read func(p *peer, r reply) token) []token {
	t.Helper()
	var (
		writers, staying sync.WaitGroup
		mu               sync.Mutex
		all              []token
	)
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended); staying.Wait() })
	for i := range writersPerServer * len(s.target.Servers) {
		p, churn := s.peer(t, i), s.peer(t, i)
		writers.Go(func() {
			tokens := p.writeAll(request, read)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, tokens...)
			staying.Go(func() { p.stay(ended) }) // its nodes are looked at when the slowest writer has ended
		})
		writers.Go(func() { churn.churn(s) })
	}
	writers.Wait()
	require.Len(t, all, writersPerServer*len(s.target.Servers)*writesPerWriter)
	return all
}

func (p *peer) writeAll(request func(*peer) int32, read func(*peer, reply) token) (all []token) {
	var waiting []int32
	for len(all) < writesPerWriter {
		for len(waiting) < inFlight && len(all)+len(waiting) < writesPerWriter {
			waiting = append(waiting, request(p))
		}
		r := p.answer(waiting[0])
		waiting = waiting[1:]
		if r.Err != wire.OK {
			p.t.Errorf("write: %v", r.Err)
			return all
		}
		all = append(all, read(p, r))
	}
	return all
}

// stay keeps the session alive until ended is closed.
func (p *peer) stay(ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-time.After(p.timeout / 10):
		}
		if p.write(wire.RequestHeader{Xid: wire.XidPing, Op: wire.OpPing}) != nil {
			return
		}
		if _, err := p.read(); err != nil {
			return
		}
	}
}

// churn causes other transactions: writes that fail, and ephemeral nodes.
func (p *peer) churn(s *fixture) {
	for range writesPerWriter / 4 {
		p.create(s.path("churn-"), "", wire.FlagEphemeralSequential)
		p.code(wire.OpDelete, anyVersion(s.path("none")))
	}
	p.close()
}

func createHeaderIsCzxid(t *testing.T, s *fixture) {
	tokens := s.underLoad(t,
		func(p *peer) int32 { return p.send(wire.OpCreate, creation(s.path("n-"), "", wire.FlagSequential)) },
		func(_ *peer, r reply) token { return token{path: r.body.String(), header: r.Zxid} },
	)
	s.wantCzxids(t, tokens)
}

func multiHeaderIsCzxid(t *testing.T, s *fixture) {
	tokens := s.underLoad(t,
		func(p *peer) int32 {
			return p.send(wire.OpMulti, parts(
				part(wire.OpCheck, num(s.root, 0)),
				part(wire.OpCreate, creation(s.path("n-"), "", wire.FlagEphemeralSequential)),
			))
		},
		func(p *peer, r reply) token { return token{path: r.results(p)[1].path, header: r.Zxid} },
	)
	s.wantCzxids(t, tokens)
}

func setHeaderIsMzxid(t *testing.T, s *fixture) {
	tokens := s.underLoad(t,
		func(p *peer) int32 { return p.send(wire.OpSetData, setting(s.root, "x", wire.AnyVersion)) },
		func(p *peer, r reply) token { return token{header: r.Zxid, stat: r.stat(p).Mzxid} },
	)
	for _, k := range tokens {
		require.Equal(t, k.stat, k.header)
	}
	distinctZxids(t, tokens)
}

// deleteHeaderIsPzxid deletes each node from a directory of its own, and reads the directory
// directly afterwards. No two creates and deletes have the same zxid. So a contender for a lock
// whose node was created by the transaction directly after a deletion knows that there was no other
// transaction between them.
func deleteHeaderIsPzxid(t *testing.T, s *fixture) {
	tokens := s.underLoad(t, s.sendMakeAndDelete, func(p *peer, made reply) token {
		deleted, dir := p.answer(made.Xid+1), p.answer(made.Xid+2)
		require.Equal(p.t, wire.OK, deleted.Err)
		return token{made: made.Zxid, header: deleted.Zxid, stat: dir.stat(p).Pzxid}
	})
	all := tokens
	for _, k := range tokens {
		require.Equal(t, k.stat, k.header)
		require.Greater(t, k.header, k.made)
		all = append(all, token{header: k.made})
	}
	distinctZxids(t, all)
}

// sendMakeAndDelete sends three requests and returns the xid of the first.
func (s *fixture) sendMakeAndDelete(p *peer) int32 {
	dir := s.path(fmt.Sprintf("%x-%d", p.session, p.xid))
	kid := wire.JoinPath(dir, "kid")
	xid := p.send(wire.OpMulti,
		parts(part(wire.OpCreate, creation(dir, "", 0)), part(wire.OpCreate, creation(kid, "", 0))))
	p.send(wire.OpDelete, anyVersion(kid))
	p.send(wire.OpExists, look(dir))
	return xid
}

// wantCzxids compares the zxids of the reply headers with those of the nodes' stats.
func (s *fixture) wantCzxids(t *testing.T, tokens []token) {
	t.Helper()
	distinctZxids(t, tokens)
	p := s.peer(t, 0)
	p.sync(s.root)
	for batch := range slices.Chunk(tokens, 100) {
		xids := make([]int32, len(batch))
		for i, k := range batch {
			xids[i] = p.send(wire.OpExists, look(k.path))
		}
		for i, k := range batch {
			r := p.answer(xids[i])
			require.Equal(t, wire.OK, r.Err, k.path)
			require.Equal(t, r.stat(p).Czxid, k.header, k.path)
		}
	}
}

func distinctZxids(t *testing.T, tokens []token) {
	t.Helper()
	seen := make(map[int64]bool, len(tokens))
	for _, k := range tokens {
		require.False(t, seen[k.header], "two writes under zxid %x", k.header)
		seen[k.header] = true
	}
}

func zxidsRiseWithSequence(t *testing.T, s *fixture) {
	tokens := s.underLoad(t,
		func(p *peer) int32 {
			return p.send(wire.OpCreate2, creation(s.path("lock-"), "", wire.FlagEphemeralSequential))
		},
		func(p *peer, r reply) token {
			return token{path: r.body.String(), header: r.Zxid, stat: r.stat(p).Czxid}
		},
	)
	slices.SortFunc(tokens, func(a, b token) int { return cmp.Compare(sequence(t, a.path), sequence(t, b.path)) })
	for i, k := range tokens {
		require.Equal(t, k.stat, k.header, k.path)
		if i > 0 {
			require.Greater(t, k.header, tokens[i-1].header, "%s after %s", k.path, tokens[i-1].path)
		}
	}
}

// sequence returns the number at the end of a sequential node's name.
func sequence(t *testing.T, path string) int {
	t.Helper()
	n, err := strconv.Atoi(path[len(path)-10:])
	require.NoError(t, err)
	return n
}
