package workflow

import (
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// The limits of a recordCache, in nodes and bytes.
const (
	fewRecords    = 16       // a run with fewer nodes is not kept: reading them costs little
	cachedRunSize = 1 << 20  // nor is one with more bytes
	cacheSize     = 16 << 20 // all runs together
)

// recordCache keeps the steps, timers and signals that a member has read, for the next time that it
// executes the run. These nodes do not change until they are deleted.
type recordCache struct {
	mu    sync.Mutex
	runs  map[string]cachedRun // by the run's node
	bytes int
	uses  int64
}

type cachedRun struct {
	czxid    int64 // of the run's node
	cversion int32 // of the run's node when its children were listed
	listed   int   // how many were listed
	nodes    map[string]framework.Node
	bytes    int
	used     int64
}

// get returns the nodes of a run that need not be read again. run and czxid are those of its node,
// listed is the number of its children, and list the Stat that came with their names. If any child
// was deleted since the nodes were read, get returns none: Cversion counts creations and deletions,
// and the number of children rises by the former and falls by the latter.
func (c *recordCache) get(run string, czxid int64, list framework.Stat, listed int) map[string]framework.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.runs[run]
	if !ok || known.czxid != czxid || int(list.Cversion-known.cversion) != listed-known.listed {
		return nil
	}
	c.uses++
	known.used = c.uses
	c.runs[run] = known
	return known.nodes
}

// put keeps the nodes of a run, which nobody may change any more. If the cache is full, it drops
// the runs that were used least recently.
func (c *recordCache) put(run string, czxid int64, list framework.Stat, listed int, nodes map[string]framework.Node) {
	bytes := 0
	for name, n := range nodes {
		bytes += len(name) + len(n.Data) + 200
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(run)
	if len(nodes) < fewRecords || bytes > cachedRunSize {
		return
	}
	if c.runs == nil {
		c.runs = map[string]cachedRun{}
	}
	c.uses++
	c.runs[run] = cachedRun{czxid, list.Cversion, listed, nodes, bytes, c.uses}
	for c.bytes += bytes; c.bytes > cacheSize; {
		oldest := run
		for node, r := range c.runs {
			if r.used < c.runs[oldest].used {
				oldest = node
			}
		}
		c.drop(oldest)
	}
}

// drop forgets a run. c.mu is held.
func (c *recordCache) drop(node string) {
	c.bytes -= c.runs[node].bytes
	delete(c.runs, node)
}
