package conformance

import (
	"math"
	"strings"

	"github.com/lockstep-go/lockstep/internal/wire"
)

func talkConnect(s *transcript) {
	for _, timeout := range []int32{-1, 0, 1, 999, 1000, 1001, 9999, 10_000, 10_001, math.MaxInt32} {
		s.newConnection("a").connect(wire.ConnectRequest{Timeout: timeout})
	}
	s.newConnection("short").connect(wire.ConnectRequest{Timeout: 4000, Short: true})
	s.newConnection("protocol").connect(wire.ConnectRequest{Timeout: 4000, Protocol: 7})
	s.newConnection("password").connect(wire.ConnectRequest{Timeout: 4000, Password: []byte("anything")})
	s.newConnection("readonly").connect(wire.ConnectRequest{Timeout: 4000, ReadOnly: true})
	past := s.newConnection("past")
	past.connect(wire.ConnectRequest{Timeout: 4000, LastZxid: s.base})
	past.recordEvents()
}

func talkCreate(s *transcript) {
	a := s.open("a")
	a.create("/create", "x", 0)
	a.create("/create", "x", 0)
	a.create("/create/no/parent", "", 0)
	a.do(wire.OpCreate2, creation("/create/two", "abc", wire.FlagEphemeral))
	a.do(wire.OpCreate2, creation("/create/two", "", 0))
	a.create("/create/two/kid", "", 0)
	a.create("/create/two/kid-", "", wire.FlagSequential)
	a.do(wire.OpCreate, &wire.CreateRequest{Path: "/create/null", ACL: []wire.ACL{everybody}})
	a.get("/create/null")
	a.create("/create/empty", "", 0)
	a.get("/create/empty")
	a.createACL("/create/noacl")
	a.create("/", "", 0)
	a.create("/create/", "", 0)
	a.create("/zookeeper/own", "", 0)
	a.exists("/zookeeper/own")
	a.delete("/zookeeper/own", -1)
	a.list("/create")
	a.exists("/create")
}

// talkModes sends every create operation with every kind of flags.
func talkModes(s *transcript) {
	a := s.open("a")
	a.create("/modes", "", 0)
	for _, op := range []wire.Op{wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer} {
		for flags := int32(-1); flags <= 8; flags++ {
			a.do(op, creation("/modes/n-", "x", flags))
			a.delete("/modes/n-", -1)
		}
	}
	for flags := int32(-1); flags <= 8; flags++ {
		a.do(wire.OpCreateTTL, creationTTL("/modes/t-", flags, 3_600_000))
		a.delete("/modes/t-", -1)
	}
	for _, ttl := range []int64{math.MinInt64, -1, 0, 1<<40 - 1, 1 << 40, math.MaxInt64} {
		a.do(wire.OpCreateTTL, creationTTL("/modes/ttl", wire.FlagTTL, ttl))
		a.delete("/modes/ttl", -1)
	}
	a.do(wire.OpCreateContainer, creation("/modes/container", "data", wire.FlagContainer))
	a.get("/modes/container")
	a.create("/modes/container/kid", "", 0)
	a.exists("/modes/container")
	a.do(wire.OpCreateTTL, creationTTL("/modes/ttl", wire.FlagTTL, 3_600_000))
	a.get("/modes/ttl")
	a.create("/modes/ttl/kid", "", wire.FlagEphemeral)
	a.set("/modes/ttl", "x", 0)
	a.exists("/modes/ttl")
	a.list("/modes")
}

func talkPaths(s *transcript) {
	a := s.open("a")
	a.create("/paths", "", 0)
	a.create("/paths/kid", "", 0)
	for _, path := range []string{
		"", "paths", "paths/a", "//", "/paths/", "/paths//a", "//paths", "/paths/./a", "/paths/.", "/paths/..",
		"/paths/../a", "/.", "/..", "/paths/a\x00", "/paths/\x01", "/paths/\x1f", "/paths/\x7f", "/paths/\u009f",
		"/paths/\ud7ff", "/paths/\ue000", "/paths/\uf8ff", "/paths/\uffef", "/paths/\ufff0", "/paths/\uffff",
		"/paths/\U0001f600", "/none/../paths", "/none", "/none/none", "/paths/none", "/zookeeper", "/",
	} {
		s.log = append(s.log, "path "+strings.ToValidUTF8(path, "?"))
		a.create(path, "", 0)
		a.create(path, "", wire.FlagSequential)
		a.exists(path)
		a.get(path)
		a.do(wire.OpGetChildren, look(path))
		a.acl(path)
		a.do(wire.OpSync, at(path))
		a.set(path, "", 99)
		a.setACL(path, 99, everybody)
		a.delete(path, 99)
		a.do(wire.OpGetAllChildrenNumber, at(path))
		a.do(wire.OpGetEphemerals, at(path))
		a.multi(mCheck(path, 99))
		a.multiRead(mGet(path), mList(path))
		a.addWatch(path, wire.AddWatchPersistent)
		a.check(path, wire.WatcherAny)
		a.remove(path, wire.WatcherAny)
	}
	a.list("/paths")
}

func talkDelete(s *transcript) {
	a := s.open("a")
	a.create("/delete", "", 0)
	a.create("/delete/a", "", 0)
	a.create("/delete/a/b", "", 0)
	a.delete("/delete/a", -1)
	a.delete("/delete/a", 5)
	a.delete("/delete/a/b", 1)
	a.delete("/delete/a/b", -2)
	a.delete("/delete/a/b", 0)
	a.delete("/delete/a/b", 0)
	a.delete("/delete/none", -1)
	a.delete("/delete/none/none", -1)
	a.delete("/", -1)
	a.delete("/zookeeper", -1)
	a.delete("/zookeeper/quota", -1)
	a.exists("/delete/a")
	a.delete("/delete/a", -1)
	a.exists("/delete")
	a.do(wire.OpDeleteContainer, at("/delete"))
	a.exists("/delete")
}

func talkData(s *transcript) {
	a := s.open("a")
	a.create("/data", "", 0)
	a.set("/data", "one", 0)
	a.set("/data", "two", 0)
	a.set("/data", "two", -1)
	a.set("/data", "two", -2)
	a.set("/data", "same", 2)
	a.set("/data", "same", 3)
	a.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Version: -1})
	a.get("/data")
	a.set("/data/none", "", -1)
	a.get("/data/none")
	a.list("/data/none")
	a.exists("/data/none")
	a.do(wire.OpGetChildren, look("/data"))
	a.do(wire.OpSync, at("/data"))
	a.do(wire.OpSync, at("/data/none"))
	a.set("/", "root", 0)
	a.get("/")
	a.set("/", "", -1)
	a.exists("/zookeeper")
	a.list("/")
}

func talkSequence(s *transcript) {
	a, b := s.open("a"), s.open("b")
	a.create("/seq", "", 0)
	a.create("/seq/n-", "", wire.FlagSequential)
	a.create("/seq/plain", "", 0)
	a.create("/seq/e-", "", wire.FlagEphemeralSequential)
	b.create("/seq/e-", "", wire.FlagEphemeralSequential)
	a.delete("/seq/plain", -1)
	a.create("/seq/", "", wire.FlagSequential)
	a.create("/seq/n-0000000005", "", 0)
	a.create("/seq/n-", "", wire.FlagSequential)
	a.create("/seq/n-0000000007", "", 0)
	a.create("/seq/n-", "", wire.FlagSequential) // its name is taken
	a.create("/seq/n-", "", wire.FlagSequential)
	a.list("/seq")
	b.close()
	a.create("/seq/n-", "", wire.FlagSequential)
	a.exists("/seq")
	a.create("/seq/n-0000000000/kid-", "", wire.FlagSequential)
	a.create("/again", "", 0)
	a.create("/again/n-", "", wire.FlagSequential)
	a.delete("/again/n-0000000000", -1)
	a.create("/again/n-", "", wire.FlagSequential)
	a.delete("/again/n-0000000001", -1)
	a.delete("/again", -1)
	a.create("/again", "", 0)
	a.create("/again/n-", "", wire.FlagSequential)
	a.list("/again")
}
