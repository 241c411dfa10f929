package members

import (
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Group is the group of processes at one path. It is safe for concurrent use.
type Group struct {
	client *framework.Client
	path   string
	err    error // of the arguments of New; every call returns it
}

// New returns the group at path. It sends no request. If an argument is invalid, every call returns
// an error that says so.
func New(client *framework.Client, path string) *Group {
	return &Group{client: client, path: path, err: recipe.CheckClientAndPath(client, path, "a group")}
}

// Path is the group's directory.
func (g *Group) Path() string { return g.path }

// Validate returns what is wrong with the arguments of New, as every call does, or nil. It sends no
// request.
func (g *Group) Validate() error { return g.err }

func (g *Group) nodePath(name string) string { return znode.Join(g.path, name) }

// announceOp is the operation that makes watchers read the group: a transaction that changes a
// member or a cordon writes the directory, too.
func (g *Group) announceOp() framework.Op { return framework.SetOp(g.path, nil, framework.AnyVersion) }
