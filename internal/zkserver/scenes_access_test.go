package zkserver

import (
	"encoding/binary"
	"strings"

	"github.com/lockstep-go/lockstep/internal/wire"
)

func playACL(st *stage) {
	a, b := st.join("a"), st.join("b")
	d := st.root + "/d"
	a.do(wire.OpAuth, auth("digest", "alice:secret"))
	a.do(wire.OpCreate, &wire.CreateRequest{Path: d, ACL: []wire.ACL{entry(wire.PermAll, "auth", ""), entry(wire.PermRead, "world", "anyone")}})
	a.do(wire.OpGetACL, at(d))
	b.do(wire.OpGetACL, at(d))
	a.do(wire.OpCreate, create(d+"/k", "", 0))
	b.do(wire.OpGetData, look(d))
	b.do(wire.OpSetData, set(d, "", -1))
	b.do(wire.OpCreate, create(d+"/x", "", 0))
	b.do(wire.OpDelete, num(d+"/k", -1))
	b.do(wire.OpDelete, num(d+"/none", -1))
	b.do(wire.OpSetACL, setACL(d, -1, openACL...))
	b.do(wire.OpMulti, parts(part(wire.OpSetData, set(d, "", -1))))
	b.do(wire.OpMulti, parts(part(wire.OpCheck, num(d, -1))))
	a.do(wire.OpSetACL, setACL(d, 5, openACL...))
	a.do(wire.OpSetACL, setACL(d, 0, entry(wire.PermAll, "auth", "ignored")))
	for _, op := range []wire.Op{wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2, wire.OpExists} {
		b.do(op, watch(d))
	}
	b.do(wire.OpGetACL, at(d))
	b.do(wire.OpGetAllChildrenNumber, at(d))
	b.do(wire.OpMulti, parts(part(wire.OpCheck, num(d, -1))))
	b.do(wire.OpMultiRead, parts(part(wire.OpGetData, look(d)), part(wire.OpGetChildren, look(d))))
	b.do(wire.OpAddWatch, num(d, wire.AddWatchPersistent))
	b.do(wire.OpAuth, auth("digest", "bob:x"))
	b.do(wire.OpGetData, look(d))
	b.do(wire.OpAuth, auth("digest", "alice:secret"))
	b.do(wire.OpGetData, look(d))
	b.do(wire.OpSetACL, setACL(d, -1, entry(wire.PermAdmin, "auth", "")))
	b.do(wire.OpGetData, look(d))
	b.do(wire.OpGetACL, at(d))
	b.do(wire.OpDelete, num(d+"/k", -1))
	b.do(wire.OpSetACL, setACL(d, -1, openACL...))
	a.quit()
	b.quit()
}

func playACLKinds(st *stage) {
	a := st.join("a")
	d := st.root
	for i, acl := range [][]wire.ACL{
		nil,
		{entry(31, "world", "anyone"), entry(31, "world", "anyone")},
		{entry(31, "world", "somebody")},
		{entry(31, "auth", "")},
		{entry(31, "nonsense", "x")},
		{entry(31, "super", "")},
		{entry(31, "digest", "noColon")},
		{entry(31, "digest", "user:")},
		{entry(31, "digest", ":hash")},
		{entry(31, "digest", "a:b:c")},
		{entry(31, "digest", "a:b:")},
		{entry(31, "ip", "127.0.0.1")},
		{entry(31, "ip", "127.0.0.0/8")},
		{entry(31, "ip", "10.0.0.0/8")},
		{entry(31, "ip", "127.0.0.1/33")},
		{entry(31, "ip", "127.0.0.1/0")},
		{entry(31, "ip", "::1")},
		{entry(31, "ip", "127.0.0.256")},
		{entry(0, "world", "anyone")},
		{entry(31, "world", "anyone"), entry(1, "digest", "bad")},
	} {
		path := d + "/n" + string(rune('a'+i))
		a.do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: acl})
		a.do(wire.OpGetData, look(path))
		a.do(wire.OpGetACL, at(path))
	}
	a.quit()
}

func playAuth(st *stage) {
	a := st.join("a")
	a.do(wire.OpWhoAmI, &wire.EmptyRequest{})
	a.do(wire.OpAuth, auth("digest", "alice:secret"))
	a.do(wire.OpAuth, auth("digest", "alice:secret"))
	a.do(wire.OpAuth, auth("digest", "nopassword"))
	a.do(wire.OpAuth, auth("digest", ""))
	a.do(wire.OpAuth, auth("digest", "a:b:c"))
	a.do(wire.OpAuth, auth("ip", ""))
	a.do(wire.OpWhoAmI, &wire.EmptyRequest{})
	a.do(wire.OpAuth, auth("nonsense", "x"))
	a.hear()
	b := st.join("b")
	b.do(wire.OpAuth, auth("world", "anyone"))
	b.hear()
}

func playUnknown(st *stage) {
	for _, op := range []wire.Op{0, 10, 77, -1, 999} {
		a := st.join("a")
		a.do(op, at("/"))
		a.hear()
	}
	a := st.join("a")
	a.do(wire.OpDeleteContainer, at(st.root))
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

func playMalformed(st *stage) {
	a := st.join("a")
	huge := binary.BigEndian.AppendUint32(nil, 0x7fffffff)
	for _, op := range []wire.Op{wire.OpCreate, wire.OpCreate2, wire.OpCreateTTL, wire.OpDelete, wire.OpSetData, wire.OpSetACL, wire.OpMulti,
		wire.OpExists, wire.OpGetData, wire.OpGetACL, wire.OpGetChildren, wire.OpGetChildren2, wire.OpSync, wire.OpAddWatch,
		wire.OpCheckWatches, wire.OpRemoveWatches, wire.OpGetEphemerals, wire.OpGetAllChildrenNumber, wire.OpMultiRead, wire.OpSetWatches} {
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
	create(st.root+"/rest", "", 0).Encode(&e)
	e.Raw([]byte("more than there should be"))
	a.doBytes(wire.OpCreate, e.Bytes())
	a.drain()
	a.quit()
}

func playLimits(st *stage) {
	a := st.join("a")
	a.do(wire.OpCreate, create(st.root+"/big", strings.Repeat("x", 1_000_000), 0))
	a.do(wire.OpExists, look(st.root+"/big"))
	for _, head := range [][]byte{{0, 0x10, 0, 0}, {0x7f, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 0}, {0, 0, 0, 3, 1, 2, 3}} {
		b := st.join("b")
		b.write(head)
		b.hear()
	}
	for _, first := range []string{"\x00\x00\x00\x00", "\x7f\xff\xff\xff", "abcd", "\x00\x00\x00\x04abcd"} {
		c := st.client("c")
		c.dial()
		c.write([]byte(first))
		c.hear()
	}
	a.quit()
}
