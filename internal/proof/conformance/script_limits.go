package conformance

import (
	"fmt"
	"strings"

	"github.com/lockstep-go/lockstep/internal/wire"
)

func talkNoTTL(s *transcript) {
	a := s.open("a")
	a.create("/nottl", "", 0)
	for flags := int32(-1); flags <= 8; flags++ {
		a.do(wire.OpCreateTTL, creationTTL("/nottl/a", flags, 1000))
	}
	for _, ttl := range []int64{-1, 0, 1 << 40} {
		a.do(wire.OpCreateTTL, creationTTL("/nottl/a", wire.FlagTTL, ttl))
	}
	a.do(wire.OpCreateTTL, creationTTL("relative", wire.FlagTTL, 1000))
	a.do(wire.OpCreateTTL, creationTTL("/nottl/none/none", wire.FlagTTL, 1000))
	a.do(wire.OpCreate, creation("/nottl/b", "", wire.FlagTTL))
	a.do(wire.OpCreate2, creation("/nottl/b", "", wire.FlagPersistentSequentialTTL))
	a.do(wire.OpCreateContainer, creation("/nottl/b", "", wire.FlagTTL))
	a.multi(mCreate("/nottl/c", 0), part(wire.OpCreateTTL, creationTTL("/nottl/d", wire.FlagTTL, 1000)))
	a.multi(mCreate("/nottl/c", wire.FlagTTL))
	a.do(wire.OpCreateContainer, creation("/nottl/e", "", wire.FlagContainer))
	a.list("/nottl")
}

// quota creates the two nodes of a quota, as zkCli.sh does.
func (v *connection) quota(path, limits string) {
	dir := "/zookeeper/quota"
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		dir += "/" + name
		v.create(dir, "", 0)
	}
	v.create(dir+"/zookeeper_limits", limits, 0)
	v.create(dir+"/zookeeper_stats", "count=-1,bytes=-1", 0)
}

func (v *connection) usage(path string) { v.get("/zookeeper/quota" + path + "/zookeeper_stats") }

func (v *connection) endQuota(path string) {
	v.delete("/zookeeper/quota"+path+"/zookeeper_limits", -1)
	v.delete("/zookeeper/quota"+path+"/zookeeper_stats", -1)
	v.delete("/zookeeper/quota"+path, -1)
}

func talkQuotaUsage(s *transcript) {
	a, b := s.open("a"), s.open("b")
	a.create("/usage", "four", 0)
	a.create("/usage/kid", "12", 0)
	a.quota("/usage", "count=5,bytes=100")
	a.usage("/usage")
	a.create("/usage/more", "123", 0)
	a.create("/usageother", "123", 0)
	b.create("/usage/kid/e-", "1234", wire.FlagEphemeralSequential)
	a.usage("/usage")
	a.set("/usage/more", "1", -1)
	a.set("/usage", "longer than four", -1)
	a.do(wire.OpSetData, &wire.SetDataRequest{Path: "/usage/more", Version: -1})
	a.set("/usage/more", "1", 99)
	a.usage("/usage")
	a.watchData("/zookeeper/quota/usage/zookeeper_stats")
	a.multi(mCreate("/usage/m1", 0), mSet("/usage/m1", "0123456789"), mDelete("/usage/more"))
	a.multi(mCreate("/usage/m2", 0), mDelete("/none"))
	a.usage("/usage")
	b.close()
	a.usage("/usage")
	a.quota("/usage/kid", "count=1,bytes=-1=;byteHardLimit=1;other=7")
	a.create("/usage/kid/x", "12345", 0) // counts for the deeper quota alone
	a.usage("/usage")
	a.usage("/usage/kid")
	a.endQuota("/usage/kid")
	a.create("/usage/kid/y", "12345", 0)
	a.usage("/usage")
	for _, text := range []string{"count=7,bytes=8", "bytes=8", "count=1;a=2,;b=3;", "count==4", "a==4", ",;,",
		"count=+5,bytes=-7=;z=1;y=2=x"} {
		a.set("/zookeeper/quota/usage/zookeeper_stats", text, -1)
		a.create("/usage/z", "1", 0)
		a.usage("/usage")
		a.delete("/usage/z", -1)
		a.usage("/usage")
	}
	a.delete("/zookeeper/quota/usage/zookeeper_stats", -1)
	a.create("/usage/uncounted", "1", 0)
	a.create("/zookeeper/quota/usage/zookeeper_stats", "", 0)
	a.usage("/usage")
	a.endQuota("/usage")
	a.create("/usage/after", "", 0)
	a.quota("/later/below", "count=-1,bytes=-1=;countHardLimit=9")
	a.usage("/later/below")
	a.multi(mCreate("/later", 0), mCreate("/later/below", 0), mCreate("/later/below/x", 0))
	a.usage("/later/below")
	a.endQuota("/later/below")
	a.multi(mCreate("/together", 0), mCreate("/zookeeper/quota/together", 0),
		mCreate("/zookeeper/quota/together/zookeeper_limits", 0),
		mCreate("/together/a", 0), mCreate("/zookeeper/quota/together/zookeeper_stats", 0), mCreate("/together/b", 0),
		mSet("/together/b", "123"))
	a.usage("/together")
	a.endQuota("/together")
}

func talkQuotaLimits(s *transcript) {
	a := s.open("a")
	a.create("/limits", "", 0)
	a.quota("/limits", "count=2,bytes=5") // soft
	for range 3 {
		a.create("/limits/soft-", "123", wire.FlagSequential)
	}
	a.usage("/limits")
	for _, limits := range []string{
		"count=-1,bytes=-1=;countHardLimit=5", "count=9,bytes=-1=;byteHardLimit=12;countHardLimit=9",
		"byteHardLimit=10", "countHardLimit=0",
		"count=1,bytes=1=;byteHardLimit=-1;countHardLimit=-1", "byteHardLimit=0", "", "nonsense", "byteHardLimit=x",
	} {
		s.log = append(s.log, "limits "+limits)
		a.set("/zookeeper/quota/limits/zookeeper_limits", limits, -1)
		a.create("/limits/h", "123", 0)
		a.create("/limits/h-", "", wire.FlagEphemeralSequential)
		a.do(wire.OpCreateContainer, creation("/limits/c", "1", wire.FlagContainer))
		a.create("/limits/none/none", "1", 0)
		a.create("/limits/h", "1", 0)
		a.set("/limits/h", "1234", -1)
		a.set("/limits/h", "", -1)
		a.set("/limits", "0123456789", 99)
		a.set("/limits", "", 99)
		a.set("/limits", "0123456789", -1)
		a.multi(mDelete("/limits/h"), mCreate("/limits/m", 0), mCreate("/limits/n", 0))
		a.multi(mSet("/limits", ""), mSet("/limits", "0123456789"), mSet("/limits", "012345678901234567890123456789"))
		a.multi(mCheck("/limits", 99), mCreate("/limits/o", 0))
		a.usage("/limits")
		for _, name := range []string{"h", "c", "m", "n", "o"} {
			a.delete("/limits/"+name, -1)
		}
		a.set("/limits", "", -1)
		a.usage("/limits")
	}
	a.endQuota("/limits")
}

func talkSuper(s *transcript) {
	a := s.open("a")
	a.auth("digest", "alice:a")
	a.create("/super", "", 0)
	a.setACL("/super", -1, alice)
	closed := "/super/closed"
	a.createACL(closed, grant(0, "world", "anyone"))
	a.get(closed)
	b := s.open("b")
	b.auth("digest", "super:wrong")
	b.get("/super")
	b.whoAmI()
	b.auth("digest", superCredentials)
	b.whoAmI()
	b.get("/super")
	b.get(closed)
	b.acl("/super")
	b.create("/super/kid", "", 0)
	b.set(closed, "x", -1)
	b.createACL("/super/mine", grant(wire.PermAll, "auth", ""))
	b.acl("/super/mine")
	b.createACL("/super/super", grant(wire.PermAll, "super", ""))
	b.acl("/zookeeper/config")
	b.set("/zookeeper/config", "x", -1)
	b.setACL("/zookeeper/config", -1, everybody)
	b.setACL("/zookeeper/config", -1, grant(wire.PermRead, "world", "anyone"))
	b.multi(mCheck(closed, 1), mSet(closed, "y"), mDelete(closed))
	b.multiRead(mGet("/super"))
	b.setACL("/super", -1, everybody)
	a.auth("super", "")
	a.recordFrame()
}

func talkReconfig(s *transcript) {
	a := s.open("a")
	for _, b := range []reconfigRequest{{}, {joining: "server.1=127.0.0.1:1:2:participant;3"}, {members: "x"},
		{leaving: "1", from: 7}} {
		a.do(wire.OpReconfig, b)
	}
	a.get("/zookeeper/config")
}

// reconfigRequest is the request to change the members of the ensemble.
type reconfigRequest struct {
	joining, leaving, members string
	from                      int64
}

// Encode implements Request.
func (r reconfigRequest) Encode(e *wire.Encoder) {
	e.String(r.joining)
	e.String(r.leaving)
	e.String(r.members)
	e.Long(r.from)
}

// Decode implements Request. It is not called, because only clients use this type.
func (r reconfigRequest) Decode(*wire.Decoder) { panic("conformance: a client decodes no request") }

func talkBuffer(s *transcript) {
	a := s.open("a")
	a.create("/buffer", "", 0)
	overhead := emptyCreation("/buffer/x")
	for _, frame := range []int{strictBuffer - 1, strictBuffer, strictBuffer + 1, 1 << 20} {
		v := s.open("v")
		v.create("/buffer/x", strings.Repeat("x", frame-overhead), 0)
		v.conn.Close()
		again := s.resumed(v) // the session outlives it
		again.exists("/buffer/x")
		a.delete("/buffer/x", -1)
	}
	for range 15 { // answers may be larger
		a.create("/buffer/"+strings.Repeat("n", 900)+"-", "", wire.FlagSequential)
	}
	a.list("/buffer")
	// This transaction is larger than its request.
	var many []wire.MultiPart
	for range 150 {
		many = append(many, mCreate("/buffer/s-", wire.FlagSequential))
	}
	a.multi(many...)
}

// emptyCreation returns the size, in bytes, of the request that creates a node without data.
func emptyCreation(path string) int {
	var e wire.Encoder
	wire.RequestHeader{}.Encode(&e)
	creation(path, "", 0).Encode(&e)
	return e.Len()
}

// talkConnections opens one connection more than one address may have.
func talkConnections(s *transcript) {
	var all []*connection
	for i := range strictConnections + 1 {
		v := s.newConnection(fmt.Sprintf("v%d", i))
		v.connect(wire.ConnectRequest{Timeout: 10_000})
		all = append(all, v)
	}
	s.recordAnswer("stat", s.fourLetterWord("stat"))
	all[0].close()
	all[0].recordFrame()
	soon(s.t, "the connection is forgotten", func() bool { return s.fourLetterWord("ruok") == "imok" })
	late := s.newConnection("late")
	late.connect(wire.ConnectRequest{Timeout: 10_000})
}
