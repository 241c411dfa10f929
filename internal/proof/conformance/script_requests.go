package conformance

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// The requests of the conversation, in short.

func (v *connection) create(path, data string, flags int32) {
	v.do(wire.OpCreate, creation(path, data, flags))
}
func (v *connection) createACL(path string, acl ...wire.ACL) {
	v.do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: acl})
}
func (v *connection) delete(path string, version int32) { v.do(wire.OpDelete, num(path, version)) }
func (v *connection) set(path, data string, version int32) {
	v.do(wire.OpSetData, setting(path, data, version))
}
func (v *connection) setACL(path string, version int32, acl ...wire.ACL) {
	v.do(wire.OpSetACL, aclSetting(path, acl, version))
}
func (v *connection) get(path string)                { v.do(wire.OpGetData, look(path)) }
func (v *connection) exists(path string)             { v.do(wire.OpExists, look(path)) }
func (v *connection) list(path string)               { v.do(wire.OpGetChildren2, look(path)) }
func (v *connection) acl(path string)                { v.do(wire.OpGetACL, at(path)) }
func (v *connection) watchData(path string)          { v.do(wire.OpGetData, watch(path)) }
func (v *connection) watchExists(path string)        { v.do(wire.OpExists, watch(path)) }
func (v *connection) watchChildren(path string)      { v.do(wire.OpGetChildren, watch(path)) }
func (v *connection) addWatch(path string, m int32)  { v.do(wire.OpAddWatch, num(path, m)) }
func (v *connection) multi(p ...wire.MultiPart)      { v.do(wire.OpMulti, parts(p...)) }
func (v *connection) multiRead(p ...wire.MultiPart)  { v.do(wire.OpMultiRead, parts(p...)) }
func (v *connection) close()                         { v.do(wire.OpCloseSession, &wire.EmptyRequest{}) }
func (v *connection) whoAmI()                        { v.do(wire.OpWhoAmI, &wire.EmptyRequest{}) }
func (v *connection) check(path string, kind int32)  { v.do(wire.OpCheckWatches, num(path, kind)) }
func (v *connection) remove(path string, kind int32) { v.do(wire.OpRemoveWatches, num(path, kind)) }

func (v *connection) auth(scheme, credentials string) {
	v.doAs(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: scheme, Auth: []byte(credentials)})
}

func (v *connection) setWatches(op wire.Op, r wire.SetWatchesRequest) {
	r.Two = op == wire.OpSetWatches2
	v.doAs(wire.XidSetWatches, op, &r)
}

// The parts of multis, in short.

func mCreate(path string, flags int32) wire.MultiPart {
	return part(wire.OpCreate, creation(path, "", flags))
}
func mDelete(path string) wire.MultiPart         { return part(wire.OpDelete, anyVersion(path)) }
func mSet(path, data string) wire.MultiPart      { return part(wire.OpSetData, setting(path, data, -1)) }
func mCheck(path string, v int32) wire.MultiPart { return part(wire.OpCheck, num(path, v)) }
func mGet(path string) wire.MultiPart            { return part(wire.OpGetData, look(path)) }
func mList(path string) wire.MultiPart           { return part(wire.OpGetChildren, look(path)) }

// The ACLs.

func grant(perms int32, scheme, id string) wire.ACL {
	return wire.ACL{Perms: perms, Scheme: scheme, ID: id}
}

var (
	everybody = grant(wire.PermAll, "world", "anyone")
	// The digests of alice:a and bob:b.
	alice = grant(wire.PermAll, "digest", "alice:AIueg8ag5ALfqeEyKdLnva1Wvi0=")
	bob   = grant(wire.PermRead, "digest", "bob:LcrmCNs/wfVD+i5a5yaz89GyjIM=")
)

// unordered sorts the lines that talk adds, because a server deletes the ephemerals of a session in
// the order of a hash table.
func (s *transcript) unordered(talk func()) {
	before := len(s.log)
	talk()
	slices.Sort(s.log[before:])
}

// awaitGone waits until the server has deleted the node by itself. Its polls are not in the
// transcript.
func (v *connection) awaitGone(path string) {
	t := v.transcript.t
	t.Helper()
	soon(t, path+" is gone", func() bool {
		require.NoError(t, v.write(wire.RequestHeader{Xid: 1, Op: wire.OpExists}, look(path)))
		b, err := v.read()
		require.NoError(t, err)
		d := wire.NewDecoder(b)
		var h wire.ReplyHeader
		h.Decode(&d)
		return h.Err == wire.NoNode
	})
	v.record("%s is gone", path)
}
