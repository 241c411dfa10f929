//go:build linux

package chaos

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// roleNaiveReader is the role of a process that reads and adds with the client library alone.
const roleNaiveReader = "naive reader"

// runNaiveReader shows what it reads from one server after the other. It shows an empty list when
// it cannot read instances, and repeats an add to a counter that has failed.
func (p *clientProcess) runNaiveReader(ctx context.Context, servers []string) error {
	var conns []*zk.Conn
	for _, server := range append(servers, servers[len(servers)-1]) {
		// the reads of a session wait for its writes, so another one adds
		conn, _, err := zk.Connect([]string{server}, sessionTimeout, zk.WithLogInfo(false),
			zk.WithLogger(log.New(io.Discard, "", 0)))
		if err != nil {
			return err
		}
		defer conn.Close()
		for conn.State() != zk.StateHasSession && ctx.Err() == nil { // a server that is cut off begins no session
			wait(ctx, checkInterval, nil)
		}
		conns = append(conns, conn)
	}
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { p.addNaively(ctx, conns[len(servers)]) })
	others.Go(func() { p.listNaively(ctx, conns) })
	for i := 0; ; i++ {
		t, ok := p.load.begin(ctx, loadNormal)
		if !ok {
			return nil
		}
		p.readNaively(ctx, conns[i%len(servers)])
		wait(ctx, 10*time.Millisecond, t.stop)
		p.load.finish(loadNormal)
	}
}

func (p *clientProcess) readNaively(ctx context.Context, conn *zk.Conn) {
	if text, st, err := conn.Get(settingPath); err == nil {
		p.writeShown(ctx, settingPath, event{Item: string(text), Token: st.Mzxid, Source: "servers"}, nil)
	}
	var numbers []int64
	for _, key := range treeKeys {
		if data, _, err := conn.Get(key); err == nil {
			n, _ := strconv.ParseInt(string(data), 10, 64) // the harness writes numbers alone
			numbers = append(numbers, n)
		}
	}
	if len(numbers) == len(treeKeys) {
		p.writeShown(ctx, treePath, event{Numbers: numbers}, nil)
	}
	if _, st, err := conn.Get(groupPath); err == nil {
		p.writeShown(ctx, groupPath, event{Numbers: []int64{st.Mzxid}}, nil)
	}
}

// listNaively shows an empty list while no server can be reached.
func (p *clientProcess) listNaively(ctx context.Context, conns []*zk.Conn) {
	for ctx.Err() == nil {
		list := map[string]int64{}
		for _, conn := range conns {
			if conn.State() == zk.StateHasSession {
				list[staticInstance] = 0
			}
		}
		p.writeShown(ctx, instancesPath, event{Listed: list}, nil)
		wait(ctx, 10*checkInterval, nil)
	}
}

// addNaively adds 1 repeatedly. It takes the number and its version from its own writes.
func (p *clientProcess) addNaively(ctx context.Context, conn *zk.Conn) {
	var sum uint64
	version := int32(-1)
	for {
		t, ok := p.load.begin(ctx, loadNormal)
		if !ok {
			return
		}
		_ = call{request: event{Kind: kindAdd, Path: counterPath}}.run(ctx, p, func(_ int64, answer *event) error {
			for ctx.Err() == nil {
				if version >= 0 {
					st, err := conn.Set(counterPath, binary.BigEndian.AppendUint64(nil, sum+1), version)
					if err == nil {
						sum, version = sum+1, st.Version
						answer.Number = int64(sum)
						return nil
					}
				}
				version = -1
				if data, st, err := conn.Get(counterPath); err == nil && len(data) == 8 {
					sum, version = binary.BigEndian.Uint64(data), st.Version
				}
				wait(ctx, checkInterval, nil)
			}
			return ctx.Err()
		})
		wait(ctx, checkInterval, t.stop)
		p.load.finish(loadNormal)
	}
}

// latestSum returns the sum that the latest add has returned.
func (h *history) latestSum() (sum int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, op := range h.closed {
		if op.request.Kind == kindAdd {
			sum = max(sum, op.grant.Number)
		}
	}
	return sum
}

// writeForNaiveReaders changes the nodes that naive readers read, until ctx ends.
func writeForNaiveReaders(ctx context.Context, writer *framework.Client) {
	for n := 1; ctx.Err() == nil; n++ {
		data := []byte(strconv.Itoa(n))
		var ops []framework.Op
		for _, key := range treeKeys {
			ops = append(ops, framework.SetOp(key, data, framework.AnyVersion))
		}
		ops = append(ops, framework.SetOp(groupPath, nil, framework.AnyVersion),
			framework.SetOp(settingPath, append([]byte(goodPrefix), data...), framework.AnyVersion))
		_, _ = writer.Multi(ctx, ops...) // the next one follows soon
		wait(ctx, 2*checkInterval, nil)
	}
}

// awaitViolations waits until the checker of services finds, for each text, a violation that
// contains it in the history so far, or until ctx ends. It returns the texts that were not found.
func (h *history) awaitViolations(ctx context.Context, texts ...string) (missing []string) {
	for {
		h.mu.Lock()
		s := segment{shown: append([]shownEvent(nil), h.shown...)}
		h.mu.Unlock()
		found := errors.Join(newServiceChecker().check(nil, s)...)
		missing = nil
		for _, text := range texts {
			if found == nil || !strings.Contains(found.Error(), text) {
				missing = append(missing, text)
			}
		}
		if len(missing) == 0 || ctx.Err() != nil {
			return missing
		}
		wait(ctx, 10*checkInterval, nil)
	}
}

// TestNaiveReadersAreCaught runs a naive reader, which trusts its client library. It shows old
// values and changes when a follower is cut off from its leader, mixes two moments of a tree, shows
// an empty list of instances while no server can be reached, and adds twice when a reply is lost.
// The checkers must find each of these.
func TestNaiveReadersAreCaught(t *testing.T) {
	r := newHarness(t, *seedFlag, 0)
	r.env.connectObserver(t)
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	for path, data := range map[string]string{settingPath: goodPrefix, groupPath: "",
		counterPath: "\x00\x00\x00\x00\x00\x00\x00\x00"} {
		require.NoError(t, r.env.observer.CreateIfMissing(ctx, path, []byte(data), framework.Persistent))
	}
	leader, followers := r.env.Leader(), r.env.Followers()
	r.env.startClient(t, roleNaiveReader, r.rng.Uint64(), append(followers, leader)...)
	writer, err := connect(ctx, []string{r.env.Addr(leader)}) // whom no fault of this test cuts off
	require.NoError(t, err)
	defer func() { require.NoError(t, writer.Close(ctx)) }()
	writing, stopWriting := context.WithCancel(ctx)
	written := make(chan struct{})
	go func() {
		defer close(written)
		writeForNaiveReaders(writing, writer)
	}()
	r.env.sendOrder("work 1")
	require.Empty(t, r.history.awaitViolations(ctx, treePath+": c0-1 was shown [")) // of two moments

	for missed := []string{""}; len(missed) > 0; {
		// a reader that stalls may miss the moments in which the follower still answers
		require.NoError(t, r.env.CutOff(leader, followers[0]))
		while, stop := context.WithTimeout(ctx, 4*sessionTimeout)
		missed = r.history.awaitViolations(while, settingPath+": c0-1 was shown version",
			groupPath+": c0-1 was shown transaction")
		stop()
		require.NoError(t, r.env.restore())
		require.NoError(t, ctx.Err(), "%q", missed)
	}

	reader := r.env.clients[0]
	require.NoError(t, reader.eachProxy(func(p *ensemble.Proxy) { p.Hold(ensemble.Down) })())
	for unanswered := 0; unanswered < 3; { // an add that is under way counts, and its answer is lost
		sum, err := r.env.services.counter.Get(ctx)
		require.NoError(t, err)
		if unanswered++; sum == r.history.latestSum() {
			unanswered = 0
		}
		wait(ctx, 10*checkInterval, nil)
	}
	require.NoError(t, reader.eachProxy((*ensemble.Proxy).Cut)())
	require.Empty(t, r.history.awaitViolations(ctx, instancesPath+": c0-1 was shown a list without "+staticInstance))
	require.NoError(t, reader.eachProxy((*ensemble.Proxy).Heal)())
	stopWriting()
	<-written
	require.NoError(t, r.env.orderAndAwait(ctx, "rest 1"))
	sum, err := r.env.services.counter.Get(ctx)
	require.NoError(t, err)
	s := r.history.takeSegment()
	s.atRest = &servicesAtRest{counter: sum}
	require.Empty(t, s.errors)
	wrong := newServiceChecker().checkCounter(s.operations, s.atRest)
	require.NotEmpty(t, wrong)
	require.ErrorContains(t, wrong[len(wrong)-1], "adds that have succeeded and 0 whose outcome is unknown")
	r.stopClients()
}
