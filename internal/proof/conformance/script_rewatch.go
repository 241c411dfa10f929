package conformance

import "github.com/lockstep-go/lockstep/internal/wire"

func talkSetWatches(s *transcript) {
	a, b := s.open("a"), s.open("b")
	a.create("/sw", "", 0)
	for _, name := range []string{"data", "kids", "same", "gone"} {
		a.create("/sw/"+name, "", 0)
	}
	seen := b.lastZxid()
	a.set("/sw/data", "x", -1)
	a.create("/sw/kids/k", "", 0)
	a.delete("/sw/gone", -1)
	a.create("/sw/made", "", 0)
	every := []string{"/sw", "/sw/data", "/sw/kids", "/sw/same", "/sw/gone", "/sw/made", "/sw/never"}
	b.setWatches(wire.OpSetWatches, wire.SetWatchesRequest{RelativeZxid: seen, Data: every, Exist: every, Child: every})
	b.recordEvents()
	// The watches whose events were not sent immediately are set now.
	touchAll := func() {
		for _, path := range every {
			a.create(path, "", 0)
			a.set(path, "y", -1)
			a.create(path+"/new-", "", wire.FlagSequential)
		}
	}
	touchAll()
	b.recordEvents()
	for _, zxid := range []int64{0, -1, 1 << 60} {
		b.setWatches(wire.OpSetWatches,
			wire.SetWatchesRequest{RelativeZxid: zxid, Data: every, Exist: every, Child: every})
		b.recordEvents()
		touchAll()
		b.recordEvents()
	}
	b.setWatches(wire.OpSetWatches, wire.SetWatchesRequest{})
	b.setWatches(wire.OpSetWatches,
		wire.SetWatchesRequest{Data: []string{""}, Exist: []string{"bad"}, Child: []string{"/bad/"}})
	b.do(wire.OpSetWatches, &wire.SetWatchesRequest{RelativeZxid: seen}) // under an ordinary xid
	b.recordEvents()
}

func talkSetWatches2(s *transcript) {
	a, b := s.open("a"), s.open("b")
	a.create("/sx", "", 0)
	a.create("/sx/a", "", 0)
	a.create("/sx/r", "", 0)
	seen := b.lastZxid()
	a.set("/sx/a", "missed", -1)
	a.create("/sx/r/kid", "", 0)
	b.setWatches(wire.OpSetWatches2, wire.SetWatchesRequest{
		RelativeZxid: seen,
		Data:         []string{"/sx/r"},
		Exist:        []string{"/sx/late"},
		Child:        []string{"/sx/r"},
		Persistent:   []string{"/sx/a", "/sx/none"},
		Recurse:      []string{"/sx/r", "/sx/none2"},
	})
	b.recordEvents()
	for range 2 {
		a.set("/sx/a", "1", -1)
		a.create("/sx/a/kid-", "", wire.FlagSequential)
		a.create("/sx/r/kid/deep-", "", wire.FlagSequential)
		a.set("/sx/r", "1", -1)
	}
	a.create("/sx/none", "", 0)
	a.create("/sx/none2", "", 0)
	a.create("/sx/none2/kid", "", 0)
	a.create("/sx/late", "", 0)
	b.recordEvents()
	b.check("/sx/a", wire.WatcherAny)
	b.remove("/sx/r", wire.WatcherAny)
	a.set("/sx/r", "2", -1)
	b.recordEvents()
}

func talkQueries(s *transcript) {
	a, b := s.open("a"), s.open("b")
	a.create("/q", "", 0)
	a.create("/qq", "", wire.FlagEphemeral)
	a.create("/q/a", "", wire.FlagEphemeral)
	a.create("/q/b", "", 0)
	a.create("/q/b/c", "", wire.FlagEphemeral)
	b.create("/q/other", "", wire.FlagEphemeral)
	for _, path := range []string{"/", "", " ", "/q", "/q/", "/q/b", "/q/a", "/none", "q", "//"} {
		a.do(wire.OpGetEphemerals, at(path))
		b.do(wire.OpGetEphemerals, at(path))
	}
	for _, path := range []string{"/q", "/q/b", "/q/b/c", "/none", "/zookeeper"} {
		a.do(wire.OpGetAllChildrenNumber, at(path))
	}
	a.whoAmI()
	a.doAs(wire.XidPing, wire.OpPing, &wire.EmptyRequest{})
	a.doAs(77, wire.OpPing, &wire.EmptyRequest{})
	a.doAs(-5, wire.OpExists, look("/q"))
	a.doAs(0, wire.OpExists, look("/q"))
	a.doAs(3, wire.OpExists, look("/q")) // an xid that was used before
}

// talkReaping waits until the server removes nodes that are due, one after the other, so that their
// order is certain. Their zxids are not, because a server under load requests some removals twice.
// So this is the last topic.
func talkReaping(s *transcript) {
	s.hidesZxids = true
	a, b, poll := s.open("a"), s.open("b"), s.open("poll")
	a.create("/reap", "", 0)
	a.do(wire.OpCreateContainer, creation("/reap/fresh", "", wire.FlagContainer))
	a.do(wire.OpCreateContainer, creation("/reap/full", "", wire.FlagContainer))
	a.create("/reap/full/kid", "", 0)
	a.do(wire.OpCreateTTL, creationTTL("/reap/long", wire.FlagTTL, 3_600_000))
	b.addWatch("/reap", wire.AddWatchPersistentRecursive)
	b.watchChildren("/reap")

	a.do(wire.OpCreateContainer, creation("/reap/used", "", wire.FlagContainer))
	a.create("/reap/used/kid", "", 0)
	a.delete("/reap/used/kid", -1)
	poll.awaitGone("/reap/used")
	b.recordEvents()
	a.do(wire.OpCreateTTL, creationTTL("/reap/ttl", wire.FlagTTL, 1))
	poll.awaitGone("/reap/ttl")
	b.recordEvents()
	a.do(wire.OpCreateTTL, creationTTL("/reap/ttl-", wire.FlagPersistentSequentialTTL, 1))
	poll.awaitGone("/reap/ttl-0000000005")
	b.recordEvents()
	a.multi(part(wire.OpCreateContainer, creation("/reap/m", "", wire.FlagContainer)), mCreate("/reap/m/k", 0),
		mDelete("/reap/m/k"))
	poll.awaitGone("/reap/m")
	b.recordEvents()
	a.list("/reap")
	a.exists("/reap/full")
}
