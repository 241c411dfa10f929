package zkserver

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// scene is a conversation, recorded with the real server and repeated with this
// one.
type scene struct {
	name string
	run  func(*stage)
}

var scenes = []scene{
	{"sessions", playSessions},
	{"moves", playMoves},
	{"creates", playCreates},
	{"modes", playModes},
	{"deletes", playDeletes},
	{"data", playData},
	{"paths", playPaths},
	{"listings", playListings},
	{"multi", playMulti},
	{"multimodes", playMultiModes},
	{"multiread", playMultiRead},
	{"events", playEvents},
	{"ownevents", playOwnEvents},
	{"setwatches", playSetWatches},
	{"persistent", playPersistent},
	{"mixedmodes", playMixedModes},
	{"watchadmin", playWatchAdmin},
	{"sessionend", playSessionEnd},
	{"acl", playACL},
	{"aclkinds", playACLKinds},
	{"auth", playAuth},
	{"unknown", playUnknown},
	{"malformed", playMalformed},
	{"limits", playLimits},
	{"reaping", playReaping},
	{"expiry", playExpiry},
}

func create(path, data string, flags int32) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, Data: []byte(data), ACL: openACL, Flags: flags}
}

func createTTL(path string, flags int32, ttl int64) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, ACL: openACL, Flags: flags, HasTTL: true, TTL: ttl}
}

func at(path string) *wire.PathRequest                  { return &wire.PathRequest{Path: path} }
func num(path string, n int32) *wire.NumberRequest      { return &wire.NumberRequest{Path: path, Number: n} }
func look(path string) *wire.WatchRequest               { return &wire.WatchRequest{Path: path} }
func watch(path string) *wire.WatchRequest              { return &wire.WatchRequest{Path: path, Watch: true} }
func parts(p ...wire.MultiPart) *wire.MultiRequest      { return &wire.MultiRequest{Parts: p} }
func part(op wire.Op, body wire.Request) wire.MultiPart { return wire.MultiPart{Op: op, Body: body} }

func set(path, data string, version int32) *wire.SetDataRequest {
	return &wire.SetDataRequest{Path: path, Data: []byte(data), Version: version}
}

func setACL(path string, version int32, acl ...wire.ACL) *wire.SetACLRequest {
	return &wire.SetACLRequest{Path: path, ACL: acl, Version: version}
}

func entry(perms int32, scheme, id string) wire.ACL {
	return wire.ACL{Perms: perms, Scheme: scheme, ID: id}
}

func auth(scheme, credentials string) *wire.AuthRequest {
	return &wire.AuthRequest{Scheme: scheme, Auth: []byte(credentials)}
}

func playSessions(st *stage) {
	for _, ms := range []int32{0, -5, 1, 1000, 4321, 10000, 1000000} {
		c := st.client("c")
		c.open(wire.ConnectRequest{Timeout: ms})
		c.quit()
		c.hear()
	}
	short := st.client("short")
	short.open(wire.ConnectRequest{Timeout: 4000, Short: true})
	short.quit()
	withReadOnly := st.client("ro")
	withReadOnly.open(wire.ConnectRequest{Timeout: 4000, ReadOnly: true, Password: []byte("short")})
	withReadOnly.quit()
	future := st.client("future")
	future.open(wire.ConnectRequest{Timeout: 4000, LastZxid: 1 << 60})
	unknown := st.client("unknown")
	unknown.open(wire.ConnectRequest{Timeout: 4000, Session: 12345, Password: make([]byte, 16)})
	unknown.hear()
	unknown.open(wire.ConnectRequest{Timeout: 4000, Session: 12345, Short: true})
	unknown.hear()
}

func playMoves(st *stage) {
	a := st.join("a")
	ask := wire.ConnectRequest{Timeout: 4000, Session: a.session, Password: a.password}
	a.do(wire.OpCreate, create(st.root+"/e", "", wire.FlagEphemeral))
	a2 := st.client("a2")
	a2.open(ask)
	a.hear()
	a2.do(wire.OpExists, look(st.root+"/e"))
	wrong := ask
	wrong.Password = make([]byte, 16)
	thief := st.client("thief")
	thief.open(wrong)
	thief.hear()
	a2.hear()
	wrong.Password = a.password[:15]
	thief.open(wrong)
	wrong.Password = nil
	thief.open(wrong)
	a3 := st.client("a3")
	a3.open(ask)
	a3.do(wire.OpExists, look(st.root+"/e"))
	a3.quit()
	a4 := st.client("a4")
	a4.open(ask)
	a4.hear()
}

func playCreates(st *stage) {
	a := st.join("a")
	d := st.root + "/d"
	a.do(wire.OpCreate, create(d, "x", 0))
	a.do(wire.OpCreate, create(d, "x", 0))
	a.do(wire.OpCreate, create(d+"/x/y", "x", 0))
	a.do(wire.OpCreate, create(d+"/s-", "", wire.FlagSequential))
	a.do(wire.OpCreate, create(d+"/s-", "", wire.FlagEphemeralSequential))
	a.do(wire.OpDelete, num(d+"/s-0000000000", -1))
	a.do(wire.OpCreate, create(d+"/n", "", 0))
	a.do(wire.OpCreate, create(d+"/s-", "", wire.FlagEphemeralSequential))
	a.do(wire.OpCreate, create(d+"/", "", wire.FlagSequential))
	a.do(wire.OpCreate2, create(d+"/c2", "abc", wire.FlagEphemeral))
	a.do(wire.OpCreate2, create(d+"/c2", "abc", wire.FlagEphemeral))
	a.do(wire.OpCreate, create(d+"/c2/k", "", 0))
	a.do(wire.OpCreate, create(d+"/c2/k", "", wire.FlagEphemeral))
	a.do(wire.OpCreate, &wire.CreateRequest{Path: d + "/null", ACL: openACL})
	a.do(wire.OpGetData, look(d+"/null"))
	a.do(wire.OpCreate, &wire.CreateRequest{Path: d + "/noacl"})
	a.do(wire.OpCreate, &wire.CreateRequest{Path: "/nowhere/noacl"})
	a.do(wire.OpExists, look(d))
	a.do(wire.OpCreate, create(st.root+"-none/x", "", wire.FlagEphemeral))
	a.do(wire.OpDelete, num(d+"/s-0000000001", -1))
	a.do(wire.OpGetChildren2, look(d))
	a.quit()
}

func playModes(st *stage) {
	a := st.join("a")
	d := st.root
	for _, flags := range []int32{-1, 4, 5, 6, 7, 99} {
		a.do(wire.OpCreate2, create(d+"/f", "", flags))
		a.do(wire.OpExists, look(d+"/f"))
		a.do(wire.OpDelete, num(d+"/f", -1))
	}
	for _, flags := range []int32{0, 1, 2, 3, 4, 5} {
		a.do(wire.OpCreateContainer, create(d+"/c", "", flags))
		a.do(wire.OpGetChildren, look(d))
		a.do(wire.OpDelete, num(d+"/c", -1))
	}
	a.do(wire.OpCreateTTL, createTTL(d+"/t", wire.FlagTTL, 100000))
	a.do(wire.OpCreateTTL, createTTL(d+"/t-", wire.FlagPersistentSequentialTTL, 100000))
	a.do(wire.OpCreateTTL, createTTL(d+"/t2", wire.FlagTTL, 0))
	a.do(wire.OpCreateTTL, createTTL(d+"/t2", wire.FlagTTL, -1))
	a.do(wire.OpCreateTTL, createTTL(d+"/t2", wire.FlagTTL, 1<<40-1))
	a.do(wire.OpCreateTTL, createTTL(d+"/t3", wire.FlagTTL, 1<<40))
	a.do(wire.OpCreateTTL, createTTL(d+"/t4", wire.FlagPersistent, 100))
	a.do(wire.OpCreateTTL, createTTL(d+"/t5", wire.FlagEphemeral, 100))
	a.do(wire.OpCreate, create(d+"/t/child", "", wire.FlagEphemeral))
	a.do(wire.OpExists, look(d+"/t"))
	a.do(wire.OpCreateContainer, create(d+"/cc", "x", wire.FlagContainer))
	a.do(wire.OpCreate, create(d+"/cc/e", "x", wire.FlagEphemeral))
	a.do(wire.OpGetData, look(d+"/cc"))
	a.do(wire.OpGetEphemerals, at(""))
	a.quit()
}

func playDeletes(st *stage) {
	a := st.join("a")
	d := st.root + "/d"
	a.do(wire.OpCreate, create(d, "", 0))
	a.do(wire.OpCreate, create(d+"/n", "", 0))
	a.do(wire.OpDelete, num(d, -1))
	a.do(wire.OpDelete, num(d, 7))
	a.do(wire.OpDelete, num(d+"/n", 3))
	a.do(wire.OpDelete, num(d+"/none", -1))
	a.do(wire.OpDelete, num("/none/none", -1))
	for _, path := range []string{"", "/", "x", "x/y", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", d + "/", d + "/n\x00"} {
		a.do(wire.OpDelete, num(path, -1))
	}
	a.do(wire.OpDelete, num(d+"/n", 0))
	a.do(wire.OpExists, look(d))
	a.do(wire.OpDelete, num(d, 0))
	a.quit()
}

func playData(st *stage) {
	a := st.join("a")
	d := st.root + "/d"
	a.do(wire.OpCreate, create(d, "one", 0))
	a.do(wire.OpSetData, set(d, "zwei", 0))
	a.do(wire.OpSetData, set(d, "drei", 0))
	a.do(wire.OpSetData, set(d, "", 1))
	a.do(wire.OpSetData, &wire.SetDataRequest{Path: d, Version: -1})
	a.do(wire.OpGetData, look(d))
	a.do(wire.OpSetData, set(d, "x", -2))
	a.do(wire.OpSetData, set(d+"/none", "x", -1))
	a.do(wire.OpSetData, set(d+"/", "x", -1))
	a.do(wire.OpSetData, set("", "x", -1))
	a.do(wire.OpGetData, watch(d+"/none"))
	a.do(wire.OpGetChildren, watch(d+"/none"))
	a.do(wire.OpGetChildren2, watch(d+"/none"))
	a.do(wire.OpExists, look(d+"/none"))
	a.do(wire.OpSync, at(d))
	a.do(wire.OpSync, at("/none"))
	a.do(wire.OpSync, at("not a path"))
	a.do(wire.OpCheck, num(d, 9))
	a.do(wire.OpCheck, num(d+"/none", -1))
	a.do(wire.OpCheck, num(d, -1)) // 3.8 never answers
	a.quit()
}

func playPaths(st *stage) {
	a := st.join("a")
	for _, path := range []string{"", "x", "/", st.root + "/", "/" + st.root, st.root + "//x", st.root + "/.", st.root + "/..", st.root + "/./x",
		st.root + "/../x", st.root + "/...", st.root + "/a.", st.root + "/.a", st.root + "/\x00", st.root + "/\x1f", st.root + "/\u0085",
		st.root + "/\ue000", st.root + "/\ufff0", st.root + "/\U0001F600", st.root + "/é", st.root + "/日本"} {
		a.do(wire.OpCreate, create(path, "", 0))
		a.do(wire.OpSetData, set(path, "", 99))
		a.do(wire.OpSetACL, setACL(path, 99, openACL...))
		if path != "" && path != "/" {
			a.do(wire.OpExists, look(path))
			a.do(wire.OpGetACL, at(path))
		}
	}
	a.do(wire.OpGetChildren, look(st.root))
	a.quit()
}

func playListings(st *stage) {
	a, b := st.join("a"), st.join("b")
	d := st.root
	for _, name := range []string{"/x", "/x/1", "/x/2", "/x/2/deep", "/xx"} {
		a.do(wire.OpCreate, create(d+name, "", 0))
	}
	a.do(wire.OpCreate, create(d+"/x/e1", "", wire.FlagEphemeral))
	a.do(wire.OpCreate, create(d+"/xx/e2", "", wire.FlagEphemeral))
	a.do(wire.OpGetChildren, look(d))
	a.do(wire.OpGetChildren2, look(d+"/x"))
	a.do(wire.OpGetChildren, look(d+"/xx/e2"))
	a.do(wire.OpGetAllChildrenNumber, at(d))
	a.do(wire.OpGetAllChildrenNumber, at(d+"/x"))
	a.do(wire.OpGetAllChildrenNumber, at(d+"/x/1"))
	a.do(wire.OpGetAllChildrenNumber, at(d+"/none"))
	for _, prefix := range []string{"", "/", " ", d, d + "/x", d + "/xx", "/none"} {
		a.do(wire.OpGetEphemerals, at(prefix))
	}
	b.do(wire.OpGetEphemerals, at("/"))
	a.quit()
	b.quit()
}

func playMulti(st *stage) {
	a := st.join("a")
	d := st.root
	a.do(wire.OpMulti, parts(
		part(wire.OpCreate, create(d+"/m-", "", wire.FlagSequential)),
		part(wire.OpCreate2, create(d+"/m2", "", 0)),
		part(wire.OpSetData, set(d+"/m2", "q", 0)),
		part(wire.OpCheck, num(d+"/m2", 1)),
		part(wire.OpDelete, num(d+"/m2", 1)),
		part(wire.OpCreate, create(d+"/m2", "again", wire.FlagEphemeral)),
	))
	a.do(wire.OpGetData, look(d+"/m2"))
	a.do(wire.OpMulti, parts(
		part(wire.OpCreate, create(d+"/m3-", "", wire.FlagSequential)),
		part(wire.OpDelete, num(d+"/m2", 0)),
		part(wire.OpSetData, set(d, "new", -1)),
		part(wire.OpCheck, num(d+"/none", 7)),
		part(wire.OpDelete, num(d+"/m2", 1)),
	))
	a.do(wire.OpExists, look(d))
	a.do(wire.OpExists, look(d+"/m2"))
	a.do(wire.OpGetEphemerals, at(d))
	a.do(wire.OpMulti, parts())
	a.do(wire.OpMulti, parts(part(wire.OpCheck, num(d, -1))))
	a.do(wire.OpMulti, parts(part(wire.OpCheck, num(d, 8)), part(wire.OpCheck, num(d, -1))))
	a.do(wire.OpMulti, parts(part(wire.OpCheck, num("bad", -1))))
	a.do(wire.OpCreate, create(d+"/after-", "", wire.FlagSequential))
	a.do(wire.OpMulti, parts(
		part(wire.OpCreate, create(d+"/p", "", 0)),
		part(wire.OpCreate, create(d+"/p/c", "", 0)),
		part(wire.OpCreate, create(d+"/p/c", "", 0)),
	))
	a.do(wire.OpMulti, parts(
		part(wire.OpCreate, create(d+"/p", "", 0)),
		part(wire.OpCreate, create(d+"/p/c", "", 0)),
		part(wire.OpDelete, num(d+"/p/c", -1)),
		part(wire.OpSetData, set(d+"/p", "1", -1)),
		part(wire.OpSetData, set(d+"/p", "2", 1)),
	))
	a.do(wire.OpGetData, look(d+"/p"))
	a.do(wire.OpMulti, parts(part(wire.OpCreate, create(d+"/m2/k", "", 0))))
	a.do(wire.OpMulti, parts(part(wire.OpDelete, num(d+"/m2", -1)), part(wire.OpDelete, num(d, -1))))
	a.do(wire.OpGetChildren2, look(d))
	a.quit()
}

func playMultiModes(st *stage) {
	a := st.join("a")
	d := st.root
	a.do(wire.OpMulti, parts(
		part(wire.OpCreate, create(d+"/byflag", "", wire.FlagContainer)),
		part(wire.OpCreateContainer, create(d+"/byop", "", wire.FlagContainer)),
		part(wire.OpCreateContainer, create(d+"/plain", "", wire.FlagPersistent)),
		part(wire.OpCreateTTL, createTTL(d+"/ttl", wire.FlagTTL, 50000)),
		part(wire.OpCreateTTL, createTTL(d+"/nottl", wire.FlagPersistent, 50000)),
	))
	a.do(wire.OpMulti, parts(part(wire.OpCreate, create(d+"/bad", "", 42))))
	a.do(wire.OpMulti, parts(part(wire.OpCreateTTL, createTTL(d+"/bad", wire.FlagTTL, 0))))
	a.do(wire.OpGetChildren2, look(d))
	a.quit()
}

func playMultiRead(st *stage) {
	a := st.join("a")
	d := st.root
	a.do(wire.OpCreate, create(d+"/x", "data", 0))
	a.do(wire.OpMultiRead, parts(
		part(wire.OpGetData, look(d+"/x")),
		part(wire.OpGetData, look(d+"/none")),
		part(wire.OpGetChildren, look(d)),
		part(wire.OpGetChildren, look(d+"/none")),
	))
	a.do(wire.OpMultiRead, parts())
	a.do(wire.OpMultiRead, parts(part(wire.OpCheck, num(d, -1))))
	a.do(wire.OpMulti, parts(part(wire.OpGetData, look(d+"/x")), part(wire.OpCheck, num(d, -1))))
	a.drain()
	a.quit()
}

func playEvents(st *stage) {
	a, b := st.join("a"), st.join("b")
	d, w := st.root, st.root+"/w"
	b.do(wire.OpGetChildren2, watch(d))
	b.do(wire.OpExists, watch(w))
	a.do(wire.OpCreate, create(w, "", 0))
	b.drain()
	a.do(wire.OpCreate, create(d+"/unseen", "", 0))
	b.drain()
	b.do(wire.OpGetData, watch(w))
	b.do(wire.OpGetChildren, watch(w))
	b.do(wire.OpGetChildren2, watch(d))
	a.do(wire.OpSetData, set(w, "1", -1))
	a.do(wire.OpSetData, set(w, "2", -1))
	b.drain()
	b.do(wire.OpExists, watch(w))
	a.do(wire.OpDelete, num(w, -1))
	b.drain()
	b.do(wire.OpExists, watch(w))
	b.do(wire.OpExists, watch("bad path"))
	b.do(wire.OpGetChildren, watch(""))
	a.do(wire.OpMulti, parts(part(wire.OpCreate, create(w, "", 0)), part(wire.OpDelete, num(w, -1))))
	b.drain()
	b.do(wire.OpExists, watch(w))
	b.do(wire.OpGetChildren, watch(d))
	a.do(wire.OpMulti, parts(part(wire.OpCreate, create(w, "", 0)), part(wire.OpCheck, num(w, 9))))
	b.drain()
	a.do(wire.OpMulti, parts(part(wire.OpCreate, create(w, "", 0)), part(wire.OpSetData, set(w, "x", -1)), part(wire.OpDelete, num(w, -1))))
	b.drain()
	b.do(wire.OpGetACL, at(d))
	b.do(wire.OpExists, watch(d))
	a.do(wire.OpSetACL, setACL(d, -1, openACL...))
	b.drain()
	a.quit()
	b.quit()
}

func playOwnEvents(st *stage) {
	b := st.join("b")
	d := st.root
	b.do(wire.OpExists, watch(d+"/own"))
	b.do(wire.OpGetChildren, watch(d))
	b.do(wire.OpCreate, create(d+"/own", "", wire.FlagEphemeral))
	b.do(wire.OpGetData, watch(d+"/own"))
	b.do(wire.OpSetData, set(d+"/own", "1", -1))
	b.do(wire.OpGetData, watch(d+"/own"))
	b.do(wire.OpGetChildren, watch(d+"/own"))
	b.do(wire.OpDelete, num(d+"/own", -1))
	b.do(wire.OpCreate, create(d+"/own", "", wire.FlagEphemeral))
	b.do(wire.OpGetData, watch(d+"/own"))
	b.quit()
	b.hear()
}

func playSetWatches(st *stage) {
	a, b := st.join("a"), st.join("b")
	d := st.root
	for _, name := range []string{"/same", "/changed", "/deleted", "/kids", "/kids2"} {
		a.do(wire.OpCreate, create(d+name, "", 0))
	}
	b.drain()
	seen := b.zxid
	a.do(wire.OpSetData, set(d+"/changed", "2", -1))
	a.do(wire.OpDelete, num(d+"/deleted", -1))
	a.do(wire.OpCreate, create(d+"/kids/k", "", 0))
	b.do(wire.OpSetWatches, &wire.SetWatchesRequest{
		RelativeZxid: seen,
		Data:         []string{d + "/same", d + "/changed", d + "/deleted", d + "/never"},
		Exist:        []string{d + "/same", d + "/deleted", d + "/later"},
		Child:        []string{d + "/kids", d + "/kids2", d + "/deleted"},
	})
	a.do(wire.OpCreate, create(d+"/later", "", 0))
	a.do(wire.OpCreate, create(d+"/deleted", "", 0))
	a.do(wire.OpCreate, create(d+"/kids2/k", "", 0))
	a.do(wire.OpSetData, set(d+"/same", "3", -1))
	b.drain()
	b.do(wire.OpSetWatches2, &wire.SetWatchesRequest{
		RelativeZxid: seen, Two: true,
		Exist:      []string{d + "/new"},
		Persistent: []string{d + "/same", d + "/missing"},
		Recurse:    []string{d + "/kids"},
	})
	a.do(wire.OpCreate, create(d+"/missing", "", 0))
	a.do(wire.OpSetData, set(d+"/same", "4", -1))
	a.do(wire.OpSetData, set(d+"/same", "5", -1))
	a.do(wire.OpSetData, set(d+"/kids/k", "5", -1))
	b.drain()
	a.quit()
	b.quit()
}

func playPersistent(st *stage) {
	a, b, c := st.join("a"), st.join("b"), st.join("c")
	d := st.root
	b.do(wire.OpAddWatch, num(d, wire.AddWatchPersistent))
	c.do(wire.OpAddWatch, num(d, wire.AddWatchPersistentRecursive))
	a.do(wire.OpCreate, create(d+"/n", "", 0))
	a.do(wire.OpCreate, create(d+"/n/deep", "", 0))
	a.do(wire.OpSetData, set(d+"/n/deep", "3", -1))
	a.do(wire.OpSetData, set(d, "3", -1))
	a.do(wire.OpDelete, num(d+"/n/deep", -1))
	a.do(wire.OpDelete, num(d+"/n", -1))
	b.drain()
	c.drain()
	c.do(wire.OpAddWatch, num("/", wire.AddWatchPersistentRecursive))
	c.do(wire.OpGetData, watch(d))
	c.do(wire.OpGetChildren, watch(d))
	a.do(wire.OpSetData, set(d, "4", -1))
	a.do(wire.OpCreate, create(d+"/n", "", 0))
	c.drain()
	c.do(wire.OpRemoveWatches, num("/", wire.WatcherAny))
	a.do(wire.OpSetData, set(d, "5", -1))
	a.do(wire.OpDelete, num(d+"/n", -1))
	b.drain()
	c.drain()
	b.do(wire.OpAddWatch, num(d, 2))
	b.do(wire.OpAddWatch, num("bad path", 0))
	a.quit()
	b.quit()
	c.quit()
}

// playMixedModes: a later watch on the path replaces an earlier one's mode.
func playMixedModes(st *stage) {
	a, b := st.join("a"), st.join("b")
	d := st.root
	b.do(wire.OpAddWatch, num(d, wire.AddWatchPersistentRecursive))
	b.do(wire.OpAddWatch, num(d, wire.AddWatchPersistent))
	a.do(wire.OpCreate, create(d+"/n", "", 0))
	b.drain()
	b.do(wire.OpGetData, watch(d))
	a.do(wire.OpSetData, set(d, "1", -1))
	a.do(wire.OpSetData, set(d, "2", -1))
	a.do(wire.OpCreate, create(d+"/n2", "", 0))
	b.drain()
	b.do(wire.OpAddWatch, num(d, wire.AddWatchPersistentRecursive))
	b.do(wire.OpRemoveWatches, num(d, wire.WatcherData))
	a.do(wire.OpSetData, set(d, "3", -1))
	a.do(wire.OpDelete, num(d+"/n2", -1))
	a.do(wire.OpDelete, num(d+"/n", -1))
	b.drain()
	a.quit()
	b.quit()
}

func playWatchAdmin(st *stage) {
	a, b := st.join("a"), st.join("b")
	d := st.root
	for _, op := range []wire.Op{wire.OpCheckWatches, wire.OpRemoveWatches} {
		for _, kind := range []int32{0, 1, 2, 3, 4} {
			a.do(op, num(d, kind))
		}
	}
	b.do(wire.OpGetData, watch(d))
	for _, kind := range []int32{1, 2, 3} {
		a.do(wire.OpCheckWatches, num(d, kind))
		b.do(wire.OpCheckWatches, num(d, kind))
	}
	b.do(wire.OpCheckWatches, num(d+"/below", 3))
	b.do(wire.OpRemoveWatches, num(d, wire.WatcherChildren))
	b.do(wire.OpRemoveWatches, num(d, wire.WatcherAny))
	b.do(wire.OpRemoveWatches, num(d, wire.WatcherAny))
	a.do(wire.OpSetData, set(d, "1", -1))
	b.do(wire.OpAddWatch, num(d, wire.AddWatchPersistentRecursive))
	b.do(wire.OpCheckWatches, num(d+"/below", 3))
	b.do(wire.OpCheckWatches, num(d, 1))
	b.do(wire.OpRemoveWatches, num(d+"/below", wire.WatcherAny))
	b.do(wire.OpRemoveWatches, num(d, wire.WatcherChildren))
	a.do(wire.OpCreate, create(d+"/n", "", 0))
	a.do(wire.OpSetData, set(d, "2", -1))
	b.drain()
	b.do(wire.OpRemoveWatches, num(d, wire.WatcherData))
	a.do(wire.OpSetData, set(d, "3", -1))
	b.drain()
	a.quit()
	b.quit()
}

func playSessionEnd(st *stage) {
	a, b := st.join("a"), st.join("b")
	d := st.root
	a.do(wire.OpCreate, create(d+"/p", "", 0))
	for _, name := range []string{"/p/e1", "/p/e2", "/e3"} {
		a.do(wire.OpCreate, create(d+name, "", wire.FlagEphemeral))
		b.do(wire.OpExists, watch(d+name))
	}
	b.do(wire.OpGetChildren, watch(d))
	b.do(wire.OpGetChildren, watch(d+"/p"))
	a.quit()
	a.hear()
	from := len(st.lines)
	b.drain()
	slices.Sort(st.lines[from:]) // the real server deletes in hash order
	b.do(wire.OpGetChildren2, look(d))
	b.do(wire.OpGetChildren2, look(d+"/p"))
	b.quit()
}

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

// playReaping waits for the container manager, which looks every two seconds.
func playReaping(st *stage) {
	a := st.join("a")
	d := st.root
	a.do(wire.OpCreateContainer, create(d+"/fresh", "", wire.FlagContainer))
	a.do(wire.OpCreateContainer, create(d+"/outer", "", wire.FlagContainer))
	a.do(wire.OpCreateContainer, create(d+"/outer/used", "", wire.FlagContainer))
	a.do(wire.OpCreate, create(d+"/outer/used/k", "", 0))
	a.do(wire.OpDelete, num(d+"/outer/used/k", -1))
	a.do(wire.OpCreateTTL, createTTL(d+"/ttl", wire.FlagTTL, 100))
	a.do(wire.OpCreateTTL, createTTL(d+"/parent", wire.FlagTTL, 100))
	a.do(wire.OpCreate, create(d+"/parent/k", "", 0))
	a.do(wire.OpCreateTTL, createTTL(d+"/long", wire.FlagTTL, 100000))
	a.do(wire.OpExists, watch(d+"/ttl"))
	time.Sleep(6500 * time.Millisecond)
	from := len(st.lines)
	a.drain()
	st.lines = st.lines[:len(st.lines)-1] // its zxid depends on how the passes fall
	slices.Sort(st.lines[from:])
	a.send(wire.OpGetChildren, look(d))
	a.hear()
	st.lines[len(st.lines)-1] = st.lines[len(st.lines)-1][strings.Index(st.lines[len(st.lines)-1], "ok"):]
	a.quit()
	st.lines = st.lines[:len(st.lines)-1]
}

// playExpiry: an expired session's connection is closed, and its nodes go.
func playExpiry(st *stage) {
	a := st.client("a")
	a.open(wire.ConnectRequest{Timeout: 1000})
	b := st.join("b")
	a.do(wire.OpCreate, create(st.root+"/e", "", wire.FlagEphemeral))
	b.do(wire.OpExists, watch(st.root+"/e"))
	a.hear()
	b.drain()
	a2 := st.client("a2")
	a2.open(wire.ConnectRequest{Timeout: 1000, Session: a.session, Password: a.password})
	b.quit()
}
