package zkserver

import (
	"encoding/binary"
	"strings"

	"github.com/lockstep-go/lockstep/internal/wire"
)

func playACL(st *testClients) {
	a, b := st.joinClient("a"), st.joinClient("b")
	d := st.root + "/d"
	a.do(wire.OpAuth, authRequest("digest", "alice:secret"))
	a.do(wire.OpCreate, &wire.CreateRequest{Path: d,
		ACL: []wire.ACL{aclEntry(wire.PermAll, "auth", ""), aclEntry(wire.PermRead, "world", "anyone")}})
	a.do(wire.OpGetACL, pathRequest(d))
	b.do(wire.OpGetACL, pathRequest(d))
	a.do(wire.OpCreate, createRequest(d+"/k", "", 0))
	b.do(wire.OpGetData, readRequest(d))
	b.do(wire.OpSetData, setDataRequest(d, "", -1))
	b.do(wire.OpCreate, createRequest(d+"/x", "", 0))
	b.do(wire.OpDelete, numberRequest(d+"/k", -1))
	b.do(wire.OpDelete, numberRequest(d+"/none", -1))
	b.do(wire.OpSetACL, setACL(d, -1, openACL...))
	b.do(wire.OpMulti, multiRequest(multiPart(wire.OpSetData, setDataRequest(d, "", -1))))
	b.do(wire.OpMulti, multiRequest(multiPart(wire.OpCheck, numberRequest(d, -1))))
	a.do(wire.OpSetACL, setACL(d, 5, openACL...))
	a.do(wire.OpSetACL, setACL(d, 0, aclEntry(wire.PermAll, "auth", "ignored")))
	for _, op := range []wire.Op{wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2, wire.OpExists} {
		b.do(op, watchRequest(d))
	}
	b.do(wire.OpGetACL, pathRequest(d))
	b.do(wire.OpGetAllChildrenNumber, pathRequest(d))
	b.do(wire.OpMulti, multiRequest(multiPart(wire.OpCheck, numberRequest(d, -1))))
	b.do(wire.OpMultiRead, multiRequest(multiPart(wire.OpGetData, readRequest(d)),
		multiPart(wire.OpGetChildren, readRequest(d))))
	b.do(wire.OpAddWatch, numberRequest(d, wire.AddWatchPersistent))
	b.do(wire.OpAuth, authRequest("digest", "bob:x"))
	b.do(wire.OpGetData, readRequest(d))
	b.do(wire.OpAuth, authRequest("digest", "alice:secret"))
	b.do(wire.OpGetData, readRequest(d))
	b.do(wire.OpSetACL, setACL(d, -1, aclEntry(wire.PermAdmin, "auth", "")))
	b.do(wire.OpGetData, readRequest(d))
	b.do(wire.OpGetACL, pathRequest(d))
	b.do(wire.OpDelete, numberRequest(d+"/k", -1))
	b.do(wire.OpSetACL, setACL(d, -1, openACL...))
	a.quit()
	b.quit()
}

func playACLKinds(st *testClients) {
	a := st.joinClient("a")
	d := st.root
	for i, acl := range [][]wire.ACL{
		nil,
		{aclEntry(31, "world", "anyone"), aclEntry(31, "world", "anyone")},
		{aclEntry(31, "world", "somebody")},
		{aclEntry(31, "auth", "")},
		{aclEntry(31, "nonsense", "x")},
		{aclEntry(31, "super", "")},
		{aclEntry(31, "digest", "noColon")},
		{aclEntry(31, "digest", "user:")},
		{aclEntry(31, "digest", ":hash")},
		{aclEntry(31, "digest", "a:b:c")},
		{aclEntry(31, "digest", "a:b:")},
		{aclEntry(31, "ip", "127.0.0.1")},
		{aclEntry(31, "ip", "127.0.0.0/8")},
		{aclEntry(31, "ip", "10.0.0.0/8")},
		{aclEntry(31, "ip", "127.0.0.1/33")},
		{aclEntry(31, "ip", "127.0.0.1/0")},
		{aclEntry(31, "ip", "::1")},
		{aclEntry(31, "ip", "127.0.0.256")},
		{aclEntry(0, "world", "anyone")},
		{aclEntry(31, "world", "anyone"), aclEntry(1, "digest", "bad")},
	} {
		path := d + "/n" + string(rune('a'+i))
		a.do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: acl})
		a.do(wire.OpGetData, readRequest(path))
		a.do(wire.OpGetACL, pathRequest(path))
	}
	a.quit()
}

func playAuth(st *testClients) {
	a := st.joinClient("a")
	a.do(wire.OpWhoAmI, &wire.EmptyRequest{})
	a.do(wire.OpAuth, authRequest("digest", "alice:secret"))
	a.do(wire.OpAuth, authRequest("digest", "alice:secret"))
	a.do(wire.OpAuth, authRequest("digest", "nopassword"))
	a.do(wire.OpAuth, authRequest("digest", ""))
	a.do(wire.OpAuth, authRequest("digest", "a:b:c"))
	a.do(wire.OpAuth, authRequest("ip", ""))
	a.do(wire.OpWhoAmI, &wire.EmptyRequest{})
	a.do(wire.OpAuth, authRequest("nonsense", "x"))
	a.receiveFrame()
	b := st.joinClient("b")
	b.do(wire.OpAuth, authRequest("world", "anyone"))
	b.receiveFrame()
}

func playUnknown(st *testClients) {
	for _, op := range []wire.Op{0, 10, 77, -1, 999} {
		a := st.joinClient("a")
		a.do(op, pathRequest("/"))
		a.receiveFrame()
	}
	a := st.joinClient("a")
	a.do(wire.OpDeleteContainer, pathRequest(st.root))
	a.do(wire.OpReconfig, &wire.EmptyRequest{})
	var e wire.Encoder
	for range 3 {
		e.String("")
	}
	e.Long(-1)
	a.doBytes(wire.OpReconfig, e.Bytes())
	a.drain()
	a.quit()
}

func playMalformed(st *testClients) {
	a := st.joinClient("a")
	huge := binary.BigEndian.AppendUint32(nil, 0x7fffffff)
	for _, op := range []wire.Op{wire.OpCreate, wire.OpCreate2, wire.OpCreateTTL, wire.OpDelete, wire.OpSetData,
		wire.OpSetACL, wire.OpMulti,
		wire.OpExists, wire.OpGetData, wire.OpGetACL, wire.OpGetChildren, wire.OpGetChildren2, wire.OpSync,
		wire.OpAddWatch,
		wire.OpCheckWatches, wire.OpRemoveWatches, wire.OpGetEphemerals, wire.OpGetAllChildrenNumber, wire.OpMultiRead,
		wire.OpSetWatches} {
		a.doBytes(op, nil)
		a.doBytes(op, huge)
	}
	a.drain()
	var e wire.Encoder
	wire.MultiHeader{Op: wire.OpSetACL, Err: -1}.Encode(&e)
	setACL("/", -1, openACL...).Encode(&e)
	wire.MultiEnd.Encode(&e)
	a.doBytes(wire.OpMulti, e.Bytes())
	e.Reset()
	createRequest(st.root+"/rest", "", 0).Encode(&e)
	e.Raw([]byte("more than there should be"))
	a.doBytes(wire.OpCreate, e.Bytes())
	a.drain()
	a.quit()
}

func playLimits(st *testClients) {
	a := st.joinClient("a")
	a.do(wire.OpCreate, createRequest(st.root+"/big", strings.Repeat("x", 1_000_000), 0))
	a.do(wire.OpExists, readRequest(st.root+"/big"))
	for _, head := range [][]byte{{0, 0x10, 0, 0}, {0x7f, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 0},
		{0, 0, 0, 3, 1, 2, 3}} {
		b := st.joinClient("b")
		b.write(head)
		b.receiveFrame()
	}
	for _, first := range []string{"\x00\x00\x00\x00", "\x7f\xff\xff\xff", "abcd", "\x00\x00\x00\x04abcd"} {
		c := st.client("c")
		c.dial()
		c.write([]byte(first))
		c.receiveFrame()
	}
	a.quit()
}
