package conformance

import (
	"math"

	"github.com/lockstep-go/lockstep/internal/wire"
)

func talkACLSet(s *transcript) {
	a := s.open("a")
	a.create("/acl", "", 0)
	a.acl("/acl")
	a.setACL("/acl", 5, everybody)
	a.setACL("/acl", 0, everybody)
	a.setACL("/acl", 0, everybody)
	a.setACL("/acl", -1, everybody, everybody)
	a.acl("/acl")
	a.setACL("/acl", -1, everybody, alice, everybody, alice)
	a.acl("/acl")
	a.setACL("/acl", -1)
	a.setACL("/acl/none", -1, everybody)
	a.setACL("/acl/none", -1)
	a.acl("/acl/none")
	a.setACL("/acl", -1, grant(0, "world", "anyone"), grant(wire.PermAdmin, "world", "anyone"))
	a.acl("/acl")
	a.setACL("/acl", -1, grant(-1, "world", "anyone"))
	a.acl("/acl")
	a.setACL("/acl", -1, grant(math.MaxInt32, "world", "anyone"))
	a.acl("/acl")
	a.exists("/acl")
}

func talkACLKinds(s *transcript) {
	a := s.open("a")
	a.create("/kinds", "", 0)
	for _, acl := range []wire.ACL{
		grant(31, "world", "anyone"), grant(31, "world", "anybody"), grant(31, "world", ""), grant(31, "", ""),
		grant(31, "WORLD", "anyone"), grant(31, "nonsense", "x"), grant(31, "super", "x"), grant(31, "x509", "x"),
		grant(31, "auth", ""), grant(31, "auth", "x"), grant(31, "sasl", "x"),
		grant(31, "digest", "a:b"), grant(31, "digest", "a"), grant(31, "digest", ""), grant(31, "digest", "a:b:c"),
		grant(31, "digest", ":"), grant(31, "digest", ":b"), grant(31, "digest", "a:"), grant(31, "digest", "a:b:"),
		grant(31, "digest", "a::"), grant(31, "digest", "::"), grant(31, "digest", "a:b::"),
		grant(31, "ip", "127.0.0.1"), grant(31, "ip", "127.0.0.1/32"), grant(31, "ip", "127.0.0.0/8"),
		grant(31, "ip", "10.0.0.0/0"),
		grant(31, "ip", "127.0.0.1/33"), grant(31, "ip", "127.0.0.1/-1"), grant(31, "ip", "127.0.0.1/x"),
		grant(31, "ip", "127.0.0.1/"),
		grant(31, "ip", "127.0.0"), grant(31, "ip", "127.0.0.1.1"), grant(31, "ip", "127.0.0.256"),
		grant(31, "ip", "localhost"),
		grant(31, "ip", ""), grant(31, "ip", "::1"), grant(31, "ip", "127.0.0.01"), grant(31, "ip", "127.0.0.1/8/8"),
	} {
		s.log = append(s.log, "acl "+acl.Scheme+" "+acl.ID)
		a.createACL("/kinds/a", acl)
		a.createACL("/kinds/b", acl, everybody)
		a.createACL("/kinds/c", everybody, acl)
		a.acl("/kinds/a")
		a.get("/kinds/a")
		for _, name := range []string{"a", "b", "c"} {
			a.delete("/kinds/"+name, -1)
		}
	}
	a.list("/kinds")
}

// talkRefusals lets a client without credentials send every request for nodes that grant one
// permission each.
func talkRefusals(s *transcript) {
	a, stranger := s.open("a"), s.open("stranger")
	a.auth("digest", "alice:a")
	a.create("/refuse", "", 0)
	for _, perm := range []int32{0, wire.PermRead, wire.PermWrite, wire.PermCreate, wire.PermDelete, wire.PermAdmin} {
		a.createACL("/refuse/n", alice, grant(perm, "world", "anyone"), bob)
		a.create("/refuse/n/kid", "", 0)
		stranger.exists("/refuse/n")
		stranger.get("/refuse/n")
		stranger.list("/refuse/n")
		stranger.do(wire.OpGetChildren, look("/refuse/n"))
		stranger.acl("/refuse/n")
		stranger.do(wire.OpGetAllChildrenNumber, at("/refuse/n"))
		stranger.do(wire.OpSync, at("/refuse/n"))
		stranger.set("/refuse/n", "", -1)
		stranger.set("/refuse/n", "", 77)
		stranger.create("/refuse/n/new", "", 0)
		stranger.create("/refuse/n/kid", "", 0)
		stranger.create("/refuse/n/seq-", "", wire.FlagSequential)
		stranger.setACL("/refuse/n", 77, everybody)
		stranger.delete("/refuse/n/none", -1)
		stranger.delete("/refuse/n/kid", 77)
		stranger.delete("/refuse/n/kid", -1)
		stranger.multi(mCheck("/refuse/n", -1))
		stranger.multi(mCheck("/refuse/n", 77))
		stranger.multiRead(mGet("/refuse/n"), mList("/refuse/n"), mGet("/refuse"))
		stranger.addWatch("/refuse/n", wire.AddWatchPersistent)
		stranger.remove("/refuse/n", wire.WatcherAny)
		for _, name := range []string{"kid", "new", "seq-0000000001", "seq-0000000002", "seq-0000000003"} {
			a.delete("/refuse/n/"+name, -1)
		}
		a.delete("/refuse/n", -1)
	}
}

func talkRefusalsInMulti(s *transcript) {
	a, stranger := s.open("a"), s.open("stranger")
	a.auth("digest", "alice:a")
	a.create("/mrefuse", "", 0)
	a.createACL("/mrefuse/n", alice)
	a.create("/mrefuse/n/kid", "", 0)
	for _, p := range []wire.MultiPart{
		mCreate("/mrefuse/n/x", 0), mDelete("/mrefuse/n/kid"), mSet("/mrefuse/n", ""), mCheck("/mrefuse/n", -1),
		part(wire.OpCreate, &wire.CreateRequest{Path: "/mrefuse/y"}),
		part(wire.OpCreate, &wire.CreateRequest{Path: "/mrefuse/y", ACL: []wire.ACL{grant(31, "auth", "")}}),
	} {
		stranger.multi(mCreate("/mrefuse/before", 0), p, mCreate("/mrefuse/after", 0))
		a.multi(mCreate("/mrefuse/before-", wire.FlagSequential), p)
	}
	a.list("/mrefuse")
	a.list("/mrefuse/n")
}

func talkAuth(s *transcript) {
	a := s.open("a")
	a.whoAmI()
	a.auth("digest", "alice:a")
	a.whoAmI()
	a.auth("digest", "alice:a")
	a.auth("digest", "bob:b")
	a.whoAmI()
	a.createACL("/auth", grant(31, "auth", ""))
	a.acl("/auth")
	a.createACL("/auth/x", grant(wire.PermRead, "auth", "anything"), everybody)
	a.acl("/auth/x")
	b := s.open("b")
	b.get("/auth")
	b.auth("digest", "bob:wrong")
	b.get("/auth")
	b.auth("digest", "bob:b")
	b.get("/auth")
	b.acl("/auth")
	b.acl("/auth/x")
	moved := s.newConnection("moved")
	moved.connect(a.again())
	moved.whoAmI()
	moved.get("/auth")
	for _, bad := range [][2]string{{"nonsense", "x"}, {"", ""}, {"world", "anyone"}, {"digest", ""},
		{"digest", "nocolon"}, {"digest", ":"}, {"ip", "127.0.0.1"}, {"ip", ""}, {"auth", ""}} {
		s.log = append(s.log, "auth "+bad[0]+" "+bad[1])
		v := s.open("v")
		v.auth(bad[0], bad[1])
		v.whoAmI()
	}
}
