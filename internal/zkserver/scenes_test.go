package zkserver

import (
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// scene is a series of requests. A test compares this server's answers with the recorded answers
// of a real server.
type scene struct {
	name string
	run  func(*testClients)
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

func createRequest(path, data string, flags int32) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, Data: []byte(data), ACL: openACL, Flags: flags}
}

func createTTL(path string, flags int32, ttl int64) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, ACL: openACL, Flags: flags, HasTTL: true, TTL: ttl}
}

func pathRequest(path string) *wire.PathRequest { return &wire.PathRequest{Path: path} }
func numberRequest(path string, n int32) *wire.NumberRequest {
	return &wire.NumberRequest{Path: path, Number: n}
}
func readRequest(path string) *wire.WatchRequest          { return &wire.WatchRequest{Path: path} }
func watchRequest(path string) *wire.WatchRequest         { return &wire.WatchRequest{Path: path, Watch: true} }
func multiRequest(p ...wire.MultiPart) *wire.MultiRequest { return &wire.MultiRequest{Parts: p} }
func multiPart(op wire.Op, body wire.Request) wire.MultiPart {
	return wire.MultiPart{Op: op, Body: body}
}

func setDataRequest(path, data string, version int32) *wire.SetDataRequest {
	return &wire.SetDataRequest{Path: path, Data: []byte(data), Version: version}
}

func setACL(path string, version int32, acl ...wire.ACL) *wire.SetACLRequest {
	return &wire.SetACLRequest{Path: path, ACL: acl, Version: version}
}

func aclEntry(perms int32, scheme, id string) wire.ACL {
	return wire.ACL{Perms: perms, Scheme: scheme, ID: id}
}

func authRequest(scheme, credentials string) *wire.AuthRequest {
	return &wire.AuthRequest{Scheme: scheme, Auth: []byte(credentials)}
}

func playSessions(st *testClients) {
	for _, ms := range []int32{0, -5, 1, 1000, 4321, 10000, 1000000} {
		c := st.client("c")
		c.open(wire.ConnectRequest{Timeout: ms})
		c.quit()
		c.receiveFrame()
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
	unknown.receiveFrame()
	unknown.open(wire.ConnectRequest{Timeout: 4000, Session: 12345, Short: true})
	unknown.receiveFrame()
}

func playMoves(st *testClients) {
	a := st.joinClient("a")
	ask := wire.ConnectRequest{Timeout: 4000, Session: a.session, Password: a.password}
	a.do(wire.OpCreate, createRequest(st.root+"/e", "", wire.FlagEphemeral))
	a2 := st.client("a2")
	a2.open(ask)
	a.receiveFrame()
	a2.do(wire.OpExists, readRequest(st.root+"/e"))
	wrong := ask
	wrong.Password = make([]byte, 16)
	thief := st.client("thief")
	thief.open(wrong)
	thief.receiveFrame()
	a2.receiveFrame()
	wrong.Password = a.password[:15]
	thief.open(wrong)
	wrong.Password = nil
	thief.open(wrong)
	a3 := st.client("a3")
	a3.open(ask)
	a3.do(wire.OpExists, readRequest(st.root+"/e"))
	a3.quit()
	a4 := st.client("a4")
	a4.open(ask)
	a4.receiveFrame()
}

func playCreates(st *testClients) {
	a := st.joinClient("a")
	d := st.root + "/d"
	a.do(wire.OpCreate, createRequest(d, "x", 0))
	a.do(wire.OpCreate, createRequest(d, "x", 0))
	a.do(wire.OpCreate, createRequest(d+"/x/y", "x", 0))
	a.do(wire.OpCreate, createRequest(d+"/s-", "", wire.FlagSequential))
	a.do(wire.OpCreate, createRequest(d+"/s-", "", wire.FlagEphemeralSequential))
	a.do(wire.OpDelete, numberRequest(d+"/s-0000000000", -1))
	a.do(wire.OpCreate, createRequest(d+"/n", "", 0))
	a.do(wire.OpCreate, createRequest(d+"/s-", "", wire.FlagEphemeralSequential))
	a.do(wire.OpCreate, createRequest(d+"/", "", wire.FlagSequential))
	a.do(wire.OpCreate2, createRequest(d+"/c2", "abc", wire.FlagEphemeral))
	a.do(wire.OpCreate2, createRequest(d+"/c2", "abc", wire.FlagEphemeral))
	a.do(wire.OpCreate, createRequest(d+"/c2/k", "", 0))
	a.do(wire.OpCreate, createRequest(d+"/c2/k", "", wire.FlagEphemeral))
	a.do(wire.OpCreate, &wire.CreateRequest{Path: d + "/null", ACL: openACL})
	a.do(wire.OpGetData, readRequest(d+"/null"))
	a.do(wire.OpCreate, &wire.CreateRequest{Path: d + "/noacl"})
	a.do(wire.OpCreate, &wire.CreateRequest{Path: "/nowhere/noacl"})
	a.do(wire.OpExists, readRequest(d))
	a.do(wire.OpCreate, createRequest(st.root+"-none/x", "", wire.FlagEphemeral))
	a.do(wire.OpDelete, numberRequest(d+"/s-0000000001", -1))
	a.do(wire.OpGetChildren2, readRequest(d))
	a.quit()
}

func playModes(st *testClients) {
	a := st.joinClient("a")
	d := st.root
	for _, flags := range []int32{-1, 4, 5, 6, 7, 99} {
		a.do(wire.OpCreate2, createRequest(d+"/f", "", flags))
		a.do(wire.OpExists, readRequest(d+"/f"))
		a.do(wire.OpDelete, numberRequest(d+"/f", -1))
	}
	for _, flags := range []int32{0, 1, 2, 3, 4, 5} {
		a.do(wire.OpCreateContainer, createRequest(d+"/c", "", flags))
		a.do(wire.OpGetChildren, readRequest(d))
		a.do(wire.OpDelete, numberRequest(d+"/c", -1))
	}
	a.do(wire.OpCreateTTL, createTTL(d+"/t", wire.FlagTTL, 100000))
	a.do(wire.OpCreateTTL, createTTL(d+"/t-", wire.FlagPersistentSequentialTTL, 100000))
	a.do(wire.OpCreateTTL, createTTL(d+"/t2", wire.FlagTTL, 0))
	a.do(wire.OpCreateTTL, createTTL(d+"/t2", wire.FlagTTL, -1))
	a.do(wire.OpCreateTTL, createTTL(d+"/t2", wire.FlagTTL, 1<<40-1))
	a.do(wire.OpCreateTTL, createTTL(d+"/t3", wire.FlagTTL, 1<<40))
	a.do(wire.OpCreateTTL, createTTL(d+"/t4", wire.FlagPersistent, 100))
	a.do(wire.OpCreateTTL, createTTL(d+"/t5", wire.FlagEphemeral, 100))
	a.do(wire.OpCreate, createRequest(d+"/t/child", "", wire.FlagEphemeral))
	a.do(wire.OpExists, readRequest(d+"/t"))
	a.do(wire.OpCreateContainer, createRequest(d+"/cc", "x", wire.FlagContainer))
	a.do(wire.OpCreate, createRequest(d+"/cc/e", "x", wire.FlagEphemeral))
	a.do(wire.OpGetData, readRequest(d+"/cc"))
	a.do(wire.OpGetEphemerals, pathRequest(""))
	a.quit()
}

func playDeletes(st *testClients) {
	a := st.joinClient("a")
	d := st.root + "/d"
	a.do(wire.OpCreate, createRequest(d, "", 0))
	a.do(wire.OpCreate, createRequest(d+"/n", "", 0))
	a.do(wire.OpDelete, numberRequest(d, -1))
	a.do(wire.OpDelete, numberRequest(d, 7))
	a.do(wire.OpDelete, numberRequest(d+"/n", 3))
	a.do(wire.OpDelete, numberRequest(d+"/none", -1))
	a.do(wire.OpDelete, numberRequest("/none/none", -1))
	for _, path := range []string{"", "/", "x", "x/y", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", d + "/",
		d + "/n\x00"} {
		a.do(wire.OpDelete, numberRequest(path, -1))
	}
	a.do(wire.OpDelete, numberRequest(d+"/n", 0))
	a.do(wire.OpExists, readRequest(d))
	a.do(wire.OpDelete, numberRequest(d, 0))
	a.quit()
}

func playData(st *testClients) {
	a := st.joinClient("a")
	d := st.root + "/d"
	a.do(wire.OpCreate, createRequest(d, "one", 0))
	a.do(wire.OpSetData, setDataRequest(d, "zwei", 0))
	a.do(wire.OpSetData, setDataRequest(d, "drei", 0))
	a.do(wire.OpSetData, setDataRequest(d, "", 1))
	a.do(wire.OpSetData, &wire.SetDataRequest{Path: d, Version: -1})
	a.do(wire.OpGetData, readRequest(d))
	a.do(wire.OpSetData, setDataRequest(d, "x", -2))
	a.do(wire.OpSetData, setDataRequest(d+"/none", "x", -1))
	a.do(wire.OpSetData, setDataRequest(d+"/", "x", -1))
	a.do(wire.OpSetData, setDataRequest("", "x", -1))
	a.do(wire.OpGetData, watchRequest(d+"/none"))
	a.do(wire.OpGetChildren, watchRequest(d+"/none"))
	a.do(wire.OpGetChildren2, watchRequest(d+"/none"))
	a.do(wire.OpExists, readRequest(d+"/none"))
	a.do(wire.OpSync, pathRequest(d))
	a.do(wire.OpSync, pathRequest("/none"))
	a.do(wire.OpSync, pathRequest("not a path"))
	a.do(wire.OpCheck, numberRequest(d, 9))
	a.do(wire.OpCheck, numberRequest(d+"/none", -1))
	a.do(wire.OpCheck, numberRequest(d, -1)) // 3.8 never answers
	a.quit()
}

func playPaths(st *testClients) {
	a := st.joinClient("a")
	for _, path := range []string{"", "x", "/", st.root + "/", "/" + st.root, st.root + "//x", st.root + "/.",
		st.root + "/..", st.root + "/./x",
		st.root + "/../x", st.root + "/...", st.root + "/a.", st.root + "/.a", st.root + "/\x00", st.root + "/\x1f",
		st.root + "/\u0085",
		st.root + "/\ue000", st.root + "/\ufff0", st.root + "/\U0001F600", st.root + "/é", st.root + "/日本"} {
		a.do(wire.OpCreate, createRequest(path, "", 0))
		a.do(wire.OpSetData, setDataRequest(path, "", 99))
		a.do(wire.OpSetACL, setACL(path, 99, openACL...))
		if path != "" && path != "/" {
			a.do(wire.OpExists, readRequest(path))
			a.do(wire.OpGetACL, pathRequest(path))
		}
	}
	a.do(wire.OpGetChildren, readRequest(st.root))
	a.quit()
}

func playListings(st *testClients) {
	a, b := st.joinClient("a"), st.joinClient("b")
	d := st.root
	for _, name := range []string{"/x", "/x/1", "/x/2", "/x/2/deep", "/xx"} {
		a.do(wire.OpCreate, createRequest(d+name, "", 0))
	}
	a.do(wire.OpCreate, createRequest(d+"/x/e1", "", wire.FlagEphemeral))
	a.do(wire.OpCreate, createRequest(d+"/xx/e2", "", wire.FlagEphemeral))
	a.do(wire.OpGetChildren, readRequest(d))
	a.do(wire.OpGetChildren2, readRequest(d+"/x"))
	a.do(wire.OpGetChildren, readRequest(d+"/xx/e2"))
	a.do(wire.OpGetAllChildrenNumber, pathRequest(d))
	a.do(wire.OpGetAllChildrenNumber, pathRequest(d+"/x"))
	a.do(wire.OpGetAllChildrenNumber, pathRequest(d+"/x/1"))
	a.do(wire.OpGetAllChildrenNumber, pathRequest(d+"/none"))
	for _, prefix := range []string{"", "/", " ", d, d + "/x", d + "/xx", "/none"} {
		a.do(wire.OpGetEphemerals, pathRequest(prefix))
	}
	b.do(wire.OpGetEphemerals, pathRequest("/"))
	a.quit()
	b.quit()
}

func playMulti(st *testClients) {
	a := st.joinClient("a")
	d := st.root
	a.do(wire.OpMulti, multiRequest(
		multiPart(wire.OpCreate, createRequest(d+"/m-", "", wire.FlagSequential)),
		multiPart(wire.OpCreate2, createRequest(d+"/m2", "", 0)),
		multiPart(wire.OpSetData, setDataRequest(d+"/m2", "q", 0)),
		multiPart(wire.OpCheck, numberRequest(d+"/m2", 1)),
		multiPart(wire.OpDelete, numberRequest(d+"/m2", 1)),
		multiPart(wire.OpCreate, createRequest(d+"/m2", "again", wire.FlagEphemeral)),
	))
	a.do(wire.OpGetData, readRequest(d+"/m2"))
	a.do(wire.OpMulti, multiRequest(
		multiPart(wire.OpCreate, createRequest(d+"/m3-", "", wire.FlagSequential)),
		multiPart(wire.OpDelete, numberRequest(d+"/m2", 0)),
		multiPart(wire.OpSetData, setDataRequest(d, "new", -1)),
		multiPart(wire.OpCheck, numberRequest(d+"/none", 7)),
		multiPart(wire.OpDelete, numberRequest(d+"/m2", 1)),
	))
	a.do(wire.OpExists, readRequest(d))
	a.do(wire.OpExists, readRequest(d+"/m2"))
	a.do(wire.OpGetEphemerals, pathRequest(d))
	a.do(wire.OpMulti, multiRequest())
	a.do(wire.OpMulti, multiRequest(multiPart(wire.OpCheck, numberRequest(d, -1))))
	a.do(wire.OpMulti, multiRequest(multiPart(wire.OpCheck, numberRequest(d, 8)),
		multiPart(wire.OpCheck, numberRequest(d, -1))))
	a.do(wire.OpMulti, multiRequest(multiPart(wire.OpCheck, numberRequest("bad", -1))))
	a.do(wire.OpCreate, createRequest(d+"/after-", "", wire.FlagSequential))
	a.do(wire.OpMulti, multiRequest(
		multiPart(wire.OpCreate, createRequest(d+"/p", "", 0)),
		multiPart(wire.OpCreate, createRequest(d+"/p/c", "", 0)),
		multiPart(wire.OpCreate, createRequest(d+"/p/c", "", 0)),
	))
	a.do(wire.OpMulti, multiRequest(
		multiPart(wire.OpCreate, createRequest(d+"/p", "", 0)),
		multiPart(wire.OpCreate, createRequest(d+"/p/c", "", 0)),
		multiPart(wire.OpDelete, numberRequest(d+"/p/c", -1)),
		multiPart(wire.OpSetData, setDataRequest(d+"/p", "1", -1)),
		multiPart(wire.OpSetData, setDataRequest(d+"/p", "2", 1)),
	))
	a.do(wire.OpGetData, readRequest(d+"/p"))
	a.do(wire.OpMulti, multiRequest(multiPart(wire.OpCreate, createRequest(d+"/m2/k", "", 0))))
	a.do(wire.OpMulti, multiRequest(multiPart(wire.OpDelete, numberRequest(d+"/m2", -1)),
		multiPart(wire.OpDelete, numberRequest(d, -1))))
	a.do(wire.OpGetChildren2, readRequest(d))
	a.quit()
}

func playMultiModes(st *testClients) {
	a := st.joinClient("a")
	d := st.root
	a.do(wire.OpMulti, multiRequest(
		multiPart(wire.OpCreate, createRequest(d+"/byflag", "", wire.FlagContainer)),
		multiPart(wire.OpCreateContainer, createRequest(d+"/byop", "", wire.FlagContainer)),
		multiPart(wire.OpCreateContainer, createRequest(d+"/plain", "", wire.FlagPersistent)),
		multiPart(wire.OpCreateTTL, createTTL(d+"/ttl", wire.FlagTTL, 50000)),
		multiPart(wire.OpCreateTTL, createTTL(d+"/nottl", wire.FlagPersistent, 50000)),
	))
	a.do(wire.OpMulti, multiRequest(multiPart(wire.OpCreate, createRequest(d+"/bad", "", 42))))
	a.do(wire.OpMulti, multiRequest(multiPart(wire.OpCreateTTL, createTTL(d+"/bad", wire.FlagTTL, 0))))
	a.do(wire.OpGetChildren2, readRequest(d))
	a.quit()
}

func playMultiRead(st *testClients) {
	a := st.joinClient("a")
	d := st.root
	a.do(wire.OpCreate, createRequest(d+"/x", "data", 0))
	a.do(wire.OpMultiRead, multiRequest(
		multiPart(wire.OpGetData, readRequest(d+"/x")),
		multiPart(wire.OpGetData, readRequest(d+"/none")),
		multiPart(wire.OpGetChildren, readRequest(d)),
		multiPart(wire.OpGetChildren, readRequest(d+"/none")),
	))
	a.do(wire.OpMultiRead, multiRequest())
	a.do(wire.OpMultiRead, multiRequest(multiPart(wire.OpCheck, numberRequest(d, -1))))
	a.do(wire.OpMulti, multiRequest(multiPart(wire.OpGetData, readRequest(d+"/x")),
		multiPart(wire.OpCheck, numberRequest(d, -1))))
	a.drain()
	a.quit()
}

// playReaping waits for the container manager, which checks every two seconds.
func playReaping(st *testClients) {
	a := st.joinClient("a")
	d := st.root
	a.do(wire.OpCreateContainer, createRequest(d+"/fresh", "", wire.FlagContainer))
	a.do(wire.OpCreateContainer, createRequest(d+"/outer", "", wire.FlagContainer))
	a.do(wire.OpCreateContainer, createRequest(d+"/outer/used", "", wire.FlagContainer))
	a.do(wire.OpCreate, createRequest(d+"/outer/used/k", "", 0))
	a.do(wire.OpDelete, numberRequest(d+"/outer/used/k", -1))
	a.do(wire.OpCreateTTL, createTTL(d+"/ttl", wire.FlagTTL, 100))
	a.do(wire.OpCreateTTL, createTTL(d+"/parent", wire.FlagTTL, 100))
	a.do(wire.OpCreate, createRequest(d+"/parent/k", "", 0))
	a.do(wire.OpCreateTTL, createTTL(d+"/long", wire.FlagTTL, 100000))
	a.do(wire.OpExists, watchRequest(d+"/ttl"))
	time.Sleep(6500 * time.Millisecond)
	from := len(st.lines)
	a.drain()
	st.lines = st.lines[:len(st.lines)-1] // its zxid depends on the times of the checks
	slices.Sort(st.lines[from:])
	a.send(wire.OpGetChildren, readRequest(d))
	a.receiveFrame()
	st.lines[len(st.lines)-1] = st.lines[len(st.lines)-1][strings.Index(st.lines[len(st.lines)-1], "ok"):]
	a.quit()
	st.lines = st.lines[:len(st.lines)-1]
}

// playExpiry: the server closes the connection of an expired session, and deletes its nodes.
func playExpiry(st *testClients) {
	a := st.client("a")
	a.open(wire.ConnectRequest{Timeout: 1000})
	b := st.joinClient("b")
	a.do(wire.OpCreate, createRequest(st.root+"/e", "", wire.FlagEphemeral))
	b.do(wire.OpExists, watchRequest(st.root+"/e"))
	a.receiveFrame()
	b.drain()
	a2 := st.client("a2")
	a2.open(wire.ConnectRequest{Timeout: 1000, Session: a.session, Password: a.password})
	b.quit()
}
