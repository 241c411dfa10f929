package conformance

import "github.com/lockstep-go/lockstep/internal/wire"

func talkMulti(s *transcript) {
	a := s.open("a")
	a.create("/multi", "", 0)
	a.multi()
	a.multi(mCreate("/multi/a", 0))
	a.multi(mCreate("/multi/s-", wire.FlagSequential), mCreate("/multi/s-", wire.FlagEphemeralSequential),
		mCreate("/multi/s-", 0))
	a.multi(mSet("/multi/a", "x"), mSet("/multi/a", "y"), mCheck("/multi/a", 2),
		part(wire.OpSetData, setting("/multi/a", "z", 2)))
	a.get("/multi/a")
	a.multi(mCreate("/multi/b", 0), mCreate("/multi/b/c", 0), mDelete("/multi/b/c"), mDelete("/multi/b"))
	a.exists("/multi")
	a.multi(mDelete("/multi/a"), mCreate("/multi/a", 0), mCheck("/multi/a", 0))
	a.get("/multi/a")
	a.multi(mCheck("/multi/a", -1))
	a.multi(mCheck("/multi/a", 0), mCheck("/multi", 0))
	a.multi(mCreate("/multi/e", wire.FlagEphemeral))
	a.exists("/multi/e")
	a.multi(part(wire.OpCreate2, creation("/multi/two", "abc", 0)))
	a.list("/multi")
}

func talkMultiFailures(s *transcript) {
	a := s.open("a")
	a.create("/mf", "", 0)
	a.create("/mf/a", "", 0)
	for _, bad := range []wire.MultiPart{
		mCreate("/mf/a", 0), mCreate("/mf/none/x", 0), mCreate("bad", 0), mCreate("", 0), mCreate("/mf/", 0),
		mCreate("/mf/x", 9), mCreate("/mf/x", -1),
		mDelete("/mf/none"), mDelete("/mf"), mDelete("/"), mDelete(""), mDelete("bad"),
		part(wire.OpDelete, num("/mf/a", 3)),
		mSet("/mf/none", ""), mSet("", ""), part(wire.OpSetData, setting("/mf/a", "", 7)),
		mCheck("/mf/none", -1), mCheck("/mf/a", 7), mCheck("", 0), mCheck("bad", 0),
	} {
		a.multi(bad)
		a.multi(mSet("/mf/a", "x"), bad, mCreate("/mf/after", 0))
		a.multi(mCreate("/mf/t", 0), mDelete("/mf/t"), mCreate("/mf/s-", wire.FlagSequential),
			mCreate("/mf/e", wire.FlagEphemeral), bad, bad)
	}
	a.multi(mDelete("/mf/a"), mDelete("/mf/a"))
	a.multi(mCreate("/mf/e", wire.FlagEphemeral), mCreate("/mf/e/kid", 0))
	a.multi(mCreate("/mf/p", 0), mCreate("/mf/p/kid", 0), mDelete("/mf/p"))
	a.list("/mf")
	a.get("/mf/a")
	a.create("/mf/s-", "", wire.FlagSequential)
	a.do(wire.OpGetEphemerals, at("/mf"))
	a.list("/mf")
}

func talkMultiModes(s *transcript) {
	a := s.open("a")
	a.create("/mm", "", 0)
	for _, op := range []wire.Op{wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer} {
		for flags := int32(-1); flags <= 7; flags++ {
			a.multi(part(op, creation("/mm/n-", "x", flags)))
			a.exists("/mm/n-")
			a.delete("/mm/n-", -1)
		}
	}
	for flags := int32(0); flags <= 7; flags++ {
		a.multi(part(wire.OpCreateTTL, creationTTL("/mm/t-", flags, 3_600_000)))
		a.exists("/mm/t-")
		a.delete("/mm/t-", -1)
	}
	noTTL := part(wire.OpCreate, creation("/mm/n-", "", wire.FlagTTL))
	a.multi(mCreate("/mm/t-", 0), noTTL, mCreate("/mm/n", 0))
	a.multi(mCheck("/mm", 77), noTTL)
	a.multi(noTTL, mCheck("/mm", 77))
	a.exists("/mm/t-")
	for _, ttl := range []int64{-1, 0, 1 << 40} {
		a.multi(part(wire.OpCreateTTL, creationTTL("/mm/t", wire.FlagTTL, ttl)))
	}
	a.multi(part(wire.OpCreateContainer, creation("/mm/c", "", wire.FlagContainer)), mCreate("/mm/c/kid", 0))
	a.exists("/mm/c")
	a.list("/mm")
	// These parts are not allowed in a multi.
	for _, p := range []wire.MultiPart{
		mGet("/mm"), mList("/mm"), part(wire.OpExists, look("/mm")), part(wire.OpSync, at("/mm")),
		part(wire.OpPing, &wire.EmptyRequest{}),
		part(wire.OpSetACL, aclSetting("/mm", []wire.ACL{everybody}, -1)), part(99, &wire.EmptyRequest{}),
	} {
		v := s.open("v")
		v.multi(mCreate("/mm/never", 0), p)
		v.recordEvents()
		v.exists("/mm/never")
	}
}

func talkMultiRead(s *transcript) {
	a := s.open("a")
	a.create("/mr", "data", 0)
	a.create("/mr/a", "", 0)
	a.create("/mr/b", "", wire.FlagEphemeral)
	a.multiRead()
	a.multiRead(mGet("/mr"))
	a.multiRead(mList("/mr"), mGet("/mr/b"), mList("/mr/a"))
	a.multiRead(mGet("/mr/none"), mGet("/mr"), mList("/mr/none"))
	a.multiRead(part(wire.OpGetData, watch("/mr")), part(wire.OpGetChildren, watch("/mr")))
	a.set("/mr", "x", -1)
	a.create("/mr/c", "", 0)
	for _, p := range []wire.MultiPart{
		mCreate("/mr/x", 0), mDelete("/mr/a"), mSet("/mr", ""), mCheck("/mr", 0), part(wire.OpExists, look("/mr")),
		part(wire.OpGetChildren2, look("/mr")),
	} {
		v := s.open("v")
		v.multiRead(mGet("/mr"), p)
		v.recordEvents()
	}
	a.list("/mr")
}
