package conformance

import (
	"encoding/binary"
	"math"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// nullPath is a request whose path is null. The path must be the first field.
type nullPath struct{ wire.Request }

func (r nullPath) Encode(e *wire.Encoder) {
	var own wire.Encoder
	r.Request.Encode(&own)
	binary.BigEndian.PutUint32(own.Bytes(), math.MaxUint32) // over the empty path's length
	e.Raw(own.Bytes())
}

// talkNulls sends every request that has a path with a null path. It does not keep a watch of a
// null path: with one, Apache fails in its own tables, at a different place each time.
func talkNulls(s *transcript) {
	a := s.open("a")
	a.create("/nulls", "", 0)
	a.create("/nulls/e", "", wire.FlagEphemeral)
	for _, p := range []wire.MultiPart{
		part(wire.OpCreate, creation("", "", 0)), part(wire.OpCreate, creation("", "", wire.FlagEphemeralSequential)),
		part(wire.OpCreate2, creation("", "", 0)), part(wire.OpCreateContainer, creation("", "", wire.FlagContainer)),
		part(wire.OpCreateTTL, creationTTL("", wire.FlagTTL, 1000)), part(wire.OpDelete, anyVersion("")),
		part(wire.OpSetData, setting("", "", -1)), part(wire.OpSetACL, aclSetting("", nil, -1)),
		part(wire.OpSetACL, aclSetting("", []wire.ACL{everybody}, -1)), part(wire.OpCheck, anyVersion("")),
		part(wire.OpExists, look("")), part(wire.OpExists, watch("")), part(wire.OpGetData, look("")),
		part(wire.OpGetData, watch("")),
		part(wire.OpGetChildren, look("")), part(wire.OpGetChildren2, look("")), part(wire.OpGetACL, at("")),
		part(wire.OpSync, at("")), part(wire.OpGetAllChildrenNumber, at("")), part(wire.OpGetEphemerals, at("")),
		part(wire.OpRemoveWatches, num("", wire.WatcherAny)), part(wire.OpRemoveWatches, num("", 7)),
		part(wire.OpCheckWatches, num("", wire.WatcherAny)), part(wire.OpAddWatch, num("", 7)),
		part(wire.OpAddWatch, num("", wire.AddWatchPersistent)), part(wire.OpCheckWatches, num("", wire.WatcherAny)),
	} {
		a.do(p.Op, nullPath{p.Body})
	}
	a.exists("/nulls")
	s.talkNullsInMulti(a)
	a.list("/nulls")
}

// talkNullsInMulti leaves the zxids out of the transcript: Apache skips one, which shows from the
// next write on.
func (s *transcript) talkNullsInMulti(a *connection) {
	s.hidesZxids = true
	defer func() { s.hidesZxids = false }()
	for _, p := range []wire.MultiPart{
		part(wire.OpCreate, creation("", "", 0)), part(wire.OpDelete, anyVersion("")),
		part(wire.OpSetData, setting("", "", -1)),
		part(wire.OpCheck, anyVersion("")),
	} {
		a.multi(mCreate("/nulls/before", 0), part(p.Op, nullPath{p.Body}))
		a.multi(mCheck("/nulls", 77), part(p.Op, nullPath{p.Body}))
	}
	a.multiRead(mGet("/nulls"), part(wire.OpGetData, nullPath{look("")}))
	a.create("/nulls/s-", "", wire.FlagSequential)
}

// talkForeign sends strings that the server returns changed: characters beyond the basic plane, and
// bytes that are not UTF-8. It sends no truncated characters: by how many characters Apache
// replaces them does not matter.
func talkForeign(s *transcript) {
	a, b := s.open("a"), s.open("b")
	a.create("/foreign", "", 0)
	for _, name := range []string{"\U0001f600", "a\U0001f600b\U0010ffff", "\xff", "a\xc0\xafb", "\u00e4\uffef"} {
		path := "/foreign/" + name
		a.do(wire.OpSync, at(path))
		a.create(path, "", 0)
		a.exists(path)
		b.setWatches(wire.OpSetWatches, wire.SetWatchesRequest{Data: []string{path}, Child: []string{path}})
		b.addWatch(path, wire.AddWatchPersistent)
		b.check(path, wire.WatcherAny)
		b.remove(path, wire.WatcherAny)
		b.remove(path, wire.WatcherAny)
		a.createACL("/foreign/acl", grant(wire.PermAll, "digest", name+":x"), everybody)
		a.acl("/foreign/acl")
		a.delete("/foreign/acl", -1)
	}
}

// talkRelative watches paths that do not begin at the root. The answer to a check of such a watch
// depends on whether any client watches a whole subtree.
func talkRelative(s *transcript) {
	a, b := s.open("a"), s.open("b")
	a.create("/rel", "", 0)
	all := func() {
		for _, path := range []string{"", "rel", "rel/a", "rel/a/b", "/rel", "/rel/a", "/rel/", "//"} {
			for kind := wire.WatcherChildren; kind <= wire.WatcherAny; kind++ {
				b.check(path, kind)
			}
		}
	}
	all()
	a.addWatch("rel/a", wire.AddWatchPersistent)
	all()
	a.addWatch("/rel", wire.AddWatchPersistentRecursive)
	all()
	a.remove("rel/a", wire.WatcherData)
	all()
	a.remove("/rel", wire.WatcherChildren)
	all()
}

// talkOutset reads the nodes that a server has at the beginning.
func talkOutset(s *transcript) {
	a := s.open("a")
	for _, path := range []string{"/zookeeper", "/zookeeper/config", "/zookeeper/quota"} {
		a.exists(path)
		a.get(path)
		a.list(path)
		a.acl(path)
		a.set(path, "", 99)
		a.setACL(path, 99, everybody)
		a.create(path+"/n-", "", wire.FlagEphemeralSequential)
		a.list(path)
	}
	a.do(wire.OpGetAllChildrenNumber, at("/"))
	a.do(wire.OpGetAllChildrenNumber, at(""))
	a.do(wire.OpGetAllChildrenNumber, at("/zookeeper"))
}
