package registry

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

const (
	maxFind   = 20_000 // nodes that Find looks at
	findChunk = 100    // nodes whose data Find reads in one request
)

// Find yields the paths of the services at and below root that have an instance, each once: the
// directories of nodes whose data is an instance's JSON with the directory's name and the node's.
// Nothing is written. It reads the data of all nodes below root.
//
// It yields an error for a node that it may not read (framework.ErrNoAuth), and goes on. Otherwise
// an error is the last: it wraps framework.ErrTooLarge when more than 20,000 nodes lie below root,
// the rest of which is left out.
func Find(ctx context.Context, client *framework.Client, root string) iter.Seq2[string, error] {
	everything := recipe.Layout{Recognize: func([]string) bool { return true }}
	return func(yield func(string, error) bool) {
		yielded := map[string]bool{}
		nodes := recipe.Find(ctx, client, []string{root}, maxFind, everything)
		for chunk, err := range recipe.Chunks(nodes, findChunk) {
			if err != nil {
				if !yield("", err) {
					return
				}
				continue
			}
			var paths []string
			for _, f := range chunk {
				if dir, _ := znode.Split(f.Path); f.Path != "/" && !yielded[dir] {
					paths = append(paths, f.Path)
				}
			}
			if len(paths) == 0 {
				continue
			}
			nodes, err := recipe.GetMany(ctx, client, paths)
			if err != nil {
				yield("", failure.Wrap("find services", root, err))
				return
			}
			for i, node := range nodes {
				dir, id := znode.Split(paths[i])
				switch {
				case errors.Is(node.Err, framework.ErrNoAuth):
					if !yield("", failure.Wrap("find services", paths[i], node.Err)) {
						return
					}
				case node.Err != nil || yielded[dir]: // it has gone, or is too large for an instance
				case isInstance(dir, id, node.Data):
					yielded[dir] = true
					if !yield(dir, nil) {
						return
					}
				}
			}
		}
	}
}

// isInstance reports whether the data of a node is an instance of the service with the name of its
// directory.
func isInstance(dir, id string, data []byte) bool {
	var stored struct {
		Name string `json:"name"`
		ID   string `json:"id"`
	}
	_, service := znode.Split(dir)
	if json.Unmarshal(data, &stored) != nil || stored.Name != service || stored.ID != id {
		return false
	}
	_, err := decodeInstance(service, id, data)
	return err == nil
}
