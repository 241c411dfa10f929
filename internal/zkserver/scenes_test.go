package zkserver

import (
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
