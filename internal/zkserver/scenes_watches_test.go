package zkserver

import (
	"slices"

	"github.com/lockstep-go/lockstep/internal/wire"
)

func playEvents(st *testClients) {
	a, b := st.joinClient("a"), st.joinClient("b")
	d, w := st.root, st.root+"/w"
	b.do(wire.OpGetChildren2, watchRequest(d))
	b.do(wire.OpExists, watchRequest(w))
	a.do(wire.OpCreate, createRequest(w, "", 0))
	b.drain()
	a.do(wire.OpCreate, createRequest(d+"/unseen", "", 0))
	b.drain()
	b.do(wire.OpGetData, watchRequest(w))
	b.do(wire.OpGetChildren, watchRequest(w))
	b.do(wire.OpGetChildren2, watchRequest(d))
	a.do(wire.OpSetData, setDataRequest(w, "1", -1))
	a.do(wire.OpSetData, setDataRequest(w, "2", -1))
	b.drain()
	b.do(wire.OpExists, watchRequest(w))
	a.do(wire.OpDelete, numberRequest(w, -1))
	b.drain()
	b.do(wire.OpExists, watchRequest(w))
	b.do(wire.OpExists, watchRequest("bad path"))
	b.do(wire.OpGetChildren, watchRequest(""))
	a.do(wire.OpMulti, multiRequest(multiPart(wire.OpCreate, createRequest(w, "", 0)),
		multiPart(wire.OpDelete, numberRequest(w, -1))))
	b.drain()
	b.do(wire.OpExists, watchRequest(w))
	b.do(wire.OpGetChildren, watchRequest(d))
	a.do(wire.OpMulti, multiRequest(multiPart(wire.OpCreate, createRequest(w, "", 0)),
		multiPart(wire.OpCheck, numberRequest(w, 9))))
	b.drain()
	a.do(wire.OpMulti, multiRequest(multiPart(wire.OpCreate, createRequest(w, "", 0)),
		multiPart(wire.OpSetData, setDataRequest(w, "x", -1)), multiPart(wire.OpDelete, numberRequest(w, -1))))
	b.drain()
	b.do(wire.OpGetACL, pathRequest(d))
	b.do(wire.OpExists, watchRequest(d))
	a.do(wire.OpSetACL, setACL(d, -1, openACL...))
	b.drain()
	a.quit()
	b.quit()
}

func playOwnEvents(st *testClients) {
	b := st.joinClient("b")
	d := st.root
	b.do(wire.OpExists, watchRequest(d+"/own"))
	b.do(wire.OpGetChildren, watchRequest(d))
	b.do(wire.OpCreate, createRequest(d+"/own", "", wire.FlagEphemeral))
	b.do(wire.OpGetData, watchRequest(d+"/own"))
	b.do(wire.OpSetData, setDataRequest(d+"/own", "1", -1))
	b.do(wire.OpGetData, watchRequest(d+"/own"))
	b.do(wire.OpGetChildren, watchRequest(d+"/own"))
	b.do(wire.OpDelete, numberRequest(d+"/own", -1))
	b.do(wire.OpCreate, createRequest(d+"/own", "", wire.FlagEphemeral))
	b.do(wire.OpGetData, watchRequest(d+"/own"))
	b.quit()
	b.receiveFrame()
}

func playSetWatches(st *testClients) {
	a, b := st.joinClient("a"), st.joinClient("b")
	d := st.root
	for _, name := range []string{"/same", "/changed", "/deleted", "/kids", "/kids2"} {
		a.do(wire.OpCreate, createRequest(d+name, "", 0))
	}
	b.drain()
	seen := b.zxid
	a.do(wire.OpSetData, setDataRequest(d+"/changed", "2", -1))
	a.do(wire.OpDelete, numberRequest(d+"/deleted", -1))
	a.do(wire.OpCreate, createRequest(d+"/kids/k", "", 0))
	b.do(wire.OpSetWatches, &wire.SetWatchesRequest{
		RelativeZxid: seen,
		Data:         []string{d + "/same", d + "/changed", d + "/deleted", d + "/never"},
		Exist:        []string{d + "/same", d + "/deleted", d + "/later"},
		Child:        []string{d + "/kids", d + "/kids2", d + "/deleted"},
	})
	a.do(wire.OpCreate, createRequest(d+"/later", "", 0))
	a.do(wire.OpCreate, createRequest(d+"/deleted", "", 0))
	a.do(wire.OpCreate, createRequest(d+"/kids2/k", "", 0))
	a.do(wire.OpSetData, setDataRequest(d+"/same", "3", -1))
	b.drain()
	b.do(wire.OpSetWatches2, &wire.SetWatchesRequest{
		RelativeZxid: seen, Two: true,
		Exist:      []string{d + "/new"},
		Persistent: []string{d + "/same", d + "/missing"},
		Recurse:    []string{d + "/kids"},
	})
	a.do(wire.OpCreate, createRequest(d+"/missing", "", 0))
	a.do(wire.OpSetData, setDataRequest(d+"/same", "4", -1))
	a.do(wire.OpSetData, setDataRequest(d+"/same", "5", -1))
	a.do(wire.OpSetData, setDataRequest(d+"/kids/k", "5", -1))
	b.drain()
	a.quit()
	b.quit()
}

func playPersistent(st *testClients) {
	a, b, c := st.joinClient("a"), st.joinClient("b"), st.joinClient("c")
	d := st.root
	b.do(wire.OpAddWatch, numberRequest(d, wire.AddWatchPersistent))
	c.do(wire.OpAddWatch, numberRequest(d, wire.AddWatchPersistentRecursive))
	a.do(wire.OpCreate, createRequest(d+"/n", "", 0))
	a.do(wire.OpCreate, createRequest(d+"/n/deep", "", 0))
	a.do(wire.OpSetData, setDataRequest(d+"/n/deep", "3", -1))
	a.do(wire.OpSetData, setDataRequest(d, "3", -1))
	a.do(wire.OpDelete, numberRequest(d+"/n/deep", -1))
	a.do(wire.OpDelete, numberRequest(d+"/n", -1))
	b.drain()
	c.drain()
	c.do(wire.OpAddWatch, numberRequest("/", wire.AddWatchPersistentRecursive))
	c.do(wire.OpGetData, watchRequest(d))
	c.do(wire.OpGetChildren, watchRequest(d))
	a.do(wire.OpSetData, setDataRequest(d, "4", -1))
	a.do(wire.OpCreate, createRequest(d+"/n", "", 0))
	c.drain()
	c.do(wire.OpRemoveWatches, numberRequest("/", wire.WatcherAny))
	a.do(wire.OpSetData, setDataRequest(d, "5", -1))
	a.do(wire.OpDelete, numberRequest(d+"/n", -1))
	b.drain()
	c.drain()
	b.do(wire.OpAddWatch, numberRequest(d, 2))
	b.do(wire.OpAddWatch, numberRequest("bad path", 0))
	a.quit()
	b.quit()
	c.quit()
}

// playMixedModes: a later watch on a path replaces the mode of an earlier one.
func playMixedModes(st *testClients) {
	a, b := st.joinClient("a"), st.joinClient("b")
	d := st.root
	b.do(wire.OpAddWatch, numberRequest(d, wire.AddWatchPersistentRecursive))
	b.do(wire.OpAddWatch, numberRequest(d, wire.AddWatchPersistent))
	a.do(wire.OpCreate, createRequest(d+"/n", "", 0))
	b.drain()
	b.do(wire.OpGetData, watchRequest(d))
	a.do(wire.OpSetData, setDataRequest(d, "1", -1))
	a.do(wire.OpSetData, setDataRequest(d, "2", -1))
	a.do(wire.OpCreate, createRequest(d+"/n2", "", 0))
	b.drain()
	b.do(wire.OpAddWatch, numberRequest(d, wire.AddWatchPersistentRecursive))
	b.do(wire.OpRemoveWatches, numberRequest(d, wire.WatcherData))
	a.do(wire.OpSetData, setDataRequest(d, "3", -1))
	a.do(wire.OpDelete, numberRequest(d+"/n2", -1))
	a.do(wire.OpDelete, numberRequest(d+"/n", -1))
	b.drain()
	a.quit()
	b.quit()
}

func playWatchAdmin(st *testClients) {
	a, b := st.joinClient("a"), st.joinClient("b")
	d := st.root
	for _, op := range []wire.Op{wire.OpCheckWatches, wire.OpRemoveWatches} {
		for _, kind := range []int32{0, 1, 2, 3, 4} {
			a.do(op, numberRequest(d, kind))
		}
	}
	b.do(wire.OpGetData, watchRequest(d))
	for _, kind := range []int32{1, 2, 3} {
		a.do(wire.OpCheckWatches, numberRequest(d, kind))
		b.do(wire.OpCheckWatches, numberRequest(d, kind))
	}
	b.do(wire.OpCheckWatches, numberRequest(d+"/below", 3))
	b.do(wire.OpRemoveWatches, numberRequest(d, wire.WatcherChildren))
	b.do(wire.OpRemoveWatches, numberRequest(d, wire.WatcherAny))
	b.do(wire.OpRemoveWatches, numberRequest(d, wire.WatcherAny))
	a.do(wire.OpSetData, setDataRequest(d, "1", -1))
	b.do(wire.OpAddWatch, numberRequest(d, wire.AddWatchPersistentRecursive))
	b.do(wire.OpCheckWatches, numberRequest(d+"/below", 3))
	b.do(wire.OpCheckWatches, numberRequest(d, 1))
	b.do(wire.OpRemoveWatches, numberRequest(d+"/below", wire.WatcherAny))
	b.do(wire.OpRemoveWatches, numberRequest(d, wire.WatcherChildren))
	a.do(wire.OpCreate, createRequest(d+"/n", "", 0))
	a.do(wire.OpSetData, setDataRequest(d, "2", -1))
	b.drain()
	b.do(wire.OpRemoveWatches, numberRequest(d, wire.WatcherData))
	a.do(wire.OpSetData, setDataRequest(d, "3", -1))
	b.drain()
	a.quit()
	b.quit()
}

func playSessionEnd(st *testClients) {
	a, b := st.joinClient("a"), st.joinClient("b")
	d := st.root
	a.do(wire.OpCreate, createRequest(d+"/p", "", 0))
	for _, name := range []string{"/p/e1", "/p/e2", "/e3"} {
		a.do(wire.OpCreate, createRequest(d+name, "", wire.FlagEphemeral))
		b.do(wire.OpExists, watchRequest(d+name))
	}
	b.do(wire.OpGetChildren, watchRequest(d))
	b.do(wire.OpGetChildren, watchRequest(d+"/p"))
	a.quit()
	a.receiveFrame()
	from := len(st.lines)
	b.drain()
	slices.Sort(st.lines[from:]) // the real server deletes in hash order
	b.do(wire.OpGetChildren2, readRequest(d))
	b.do(wire.OpGetChildren2, readRequest(d+"/p"))
	b.quit()
}
