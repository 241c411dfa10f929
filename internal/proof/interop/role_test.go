package interop

import (
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// role is a kind of contender, with the configuration for each library that has it.
type role struct {
	name         string
	ours         func(*framework.Client, string) locks.Locker
	curator      Command  // kind and part
	kazoo        Command  // kind
	below        []string // the paths below the test's own, if several
	waiting      string   // the directory below the test's path where contenders wait, if not the first path
	holdersApart bool     // holders are not in the line
	lists        bool     // the libraries list their participants
}

// paths returns the paths of the lock, for a test at path.
func (r role) paths(path string) []string {
	if r.below == nil {
		return []string{path}
	}
	var all []string
	for _, name := range r.below {
		all = append(all, znode.Join(path, name))
	}
	return all
}

// line returns the directory where contenders wait.
func (r role) line(path string) string {
	if r.waiting != "" {
		return znode.Join(path, r.waiting)
	}
	return r.paths(path)[0]
}

// exclusive are the roles with one holder at a time.
var exclusive = []role{
	{
		name:    "mutex",
		ours:    func(c *framework.Client, path string) locks.Locker { return locks.NewMutex(c, path) },
		curator: Command{Spec: Spec{Kind: "mutex"}},
		kazoo:   Command{Spec: Spec{Kind: "curator-lock"}},
		lists:   true,
	},
	writer,
	{
		name: "multi-lock",
		ours: func(c *framework.Client, path string) locks.Locker {
			return locks.NewMultiLock(locks.NewMutex(c, znode.Join(path, "a")),
				locks.NewMutex(c, znode.Join(path, "b")))
		},
		curator: Command{Spec: Spec{Kind: "multi"}},
		below:   []string{"a", "b"},
	},
	{
		name:         "semaphore of one",
		ours:         func(c *framework.Client, path string) locks.Locker { return locks.NewSemaphore(c, path, 1) },
		curator:      Command{Spec: Spec{Kind: "semaphore-mutex"}},
		waiting:      "locks",
		holdersApart: true,
	},
}

// semaphore returns the role of a contender that acquires several permits of a semaphore together.
func semaphore(permits, take int) role {
	return role{
		ours: func(c *framework.Client, path string) locks.Locker {
			return locks.NewSemaphore(c, path, permits).Permits(take)
		},
		curator:      Command{Spec: Spec{Kind: "semaphore", Permits: permits, Take: take}},
		waiting:      "locks",
		holdersApart: true,
	}
}

var (
	writer = role{
		name:    "writer",
		ours:    func(c *framework.Client, path string) locks.Locker { return locks.NewRWLock(c, path) },
		curator: Command{Spec: Spec{Kind: "read-write"}, Part: "write"},
		kazoo:   Command{Spec: Spec{Kind: "curator-write"}},
		lists:   true,
	}
	reader = role{
		name:    "reader",
		ours:    func(c *framework.Client, path string) locks.Locker { return locks.NewRWLock(c, path).RLocker() },
		curator: Command{Spec: Spec{Kind: "read-write"}, Part: "read"},
		kazoo:   Command{Spec: Spec{Kind: "curator-read"}},
	}
)
