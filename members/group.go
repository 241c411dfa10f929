package members

import (
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Group is a group of processes that know of each other. It is safe for concurrent use.
type Group struct {
	client *framework.Client
	path   string
	err    error // of the arguments; every call returns it
}

// New returns the group at path.
func New(client *framework.Client, path string) *Group {
	return &Group{client: client, path: path, err: recipe.CheckClientAndPath(client, path, "a group")}
}

// Path is the group's directory.
func (g *Group) Path() string { return g.path }

func (g *Group) nodePath(name string) string { return znode.Join(g.path, name) }

// announceOp is the operation that tells watchers of a change in the same transaction.
func (g *Group) announceOp() framework.Op { return framework.SetOp(g.path, nil, framework.AnyVersion) }
