package zkserver

import (
	"slices"

	"github.com/lockstep-go/lockstep/internal/wire"
)

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
