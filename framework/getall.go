package framework

import (
	"bytes"
	"context"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// Node is what GetAll found of one node.
type Node struct {
	// Data is the node's.
	Data []byte
	// Stat is the node's.
	Stat Stat
	// Err is why there is neither, such as ErrNoNode.
	Err error
}

// GetAll reads many nodes in one request, in the order of the paths. Each is read for itself: what cannot be read
// has an error of its own, and others may change in between. The answer holds all data at once, up to 64 MiB, beyond which
// GetAll fails with ErrTooLarge. It repeats itself when the connection is lost.
func (s *Session) GetAll(ctx context.Context, paths ...string) ([]Node, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	parts, total := make([]wire.MultiPart, len(paths)), 0
	for i, path := range paths {
		full, err := s.check(path, 0)
		if err != nil {
			return nil, Wrap("get", path, err)
		}
		total += len(full) + partOverhead
		parts[i] = wire.MultiPart{Op: wire.OpGetData, Body: &wire.WatchRequest{Path: full}}
	}
	if err := fits(total); err != nil {
		return nil, Wrap("get", paths[0], err)
	}
	nodes, err := again(ctx, s, func(a asker) ([]Node, error) {
		nodes, err := ask(a, wire.OpMultiRead, &wire.MultiRequest{Parts: parts}, readNodes).read()
		if err == nil && len(nodes) != len(parts) {
			err = fmt.Errorf("zookeeper: %d answers to %d reads", len(nodes), len(parts))
		}
		return nodes, err
	})
	return nodes, Wrap("get", paths[0], err)
}

// readNodes reads the results of reads.
func readNodes(d *wire.Decoder) (nodes []Node) {
	for d.Err() == nil {
		var h wire.MultiHeader
		if h.Decode(d); h.Done || d.Err() != nil {
			return nodes
		}
		var n Node
		if h.Op == wire.OpError {
			n.Err = codeError(wire.Code(d.Int()))
		} else {
			n.Data = bytes.Clone(d.Buffer())
			n.Stat = readingStat(d)
		}
		nodes = append(nodes, n)
	}
	return nodes
}
