package locks

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// askRecord is what an ask under a lease writes into its record, as JSON. Each write states facts
// that stay true: after the transaction Seen, the ask still waited at this place, and the caller
// held these nodes. Unknown fields of later versions are ignored.
type askRecord struct {
	Version int    `json:"v"`
	Lock    string `json:"lock"` // the lock that it waits for; paths include the client's root
	askPlace
	Permits int        `json:"permits,omitempty"` // of a semaphore, how many it wants
	Held    []heldLock `json:"held"`
	Seen    int64      `json:"seen,omitempty"`   // the last transaction of a cycle that it has seen itself in
	Report  bool       `json:"report,omitempty"` // it does not fail: DeadlockReport
	Owner   string     `json:"owner"`
	Host    string     `json:"host"`
	PID     int        `json:"pid"`
	Since   time.Time  `json:"since"`
}

// askPlace is where an ask stands in the line. A claim's ask has no node.
type askPlace struct {
	Node  string `json:"node,omitempty"`
	Zxid  int64  `json:"zxid,omitempty"`  // the transaction that created it
	Slice bool   `json:"slice,omitempty"` // the node is of a slice, for whose turn it waits
}

const askRecordVersion = 1

// askDirSuffix follows a lock's path in the path of the directory of its asks.
const askDirSuffix = recipe.AskDirSuffix

// askName is the stem of a record's name.
const askName = recipe.AskName

// isAskName reports whether a child of the directory is a record.
func isAskName(name string) bool { return recipe.IsAskName(name) }

func (r askRecord) encode() []byte {
	data, err := json.Marshal(r)
	if err != nil {
		panic("locks: an ask cannot be encoded: " + err.Error()) // strings, numbers and times
	}
	return data
}

// parseAskRecord reads a record that anybody may have written. Its paths become those below root.
func parseAskRecord(data []byte, root string) (r askRecord, err error) {
	if err := json.Unmarshal(data, &r); err != nil {
		return askRecord{}, fmt.Errorf("an ask's record: %w", err)
	}
	if r.Version < 1 || r.Permits < 0 {
		return askRecord{}, fmt.Errorf("an ask's record of version %d for %d permits", r.Version, r.Permits)
	}
	if err := checkHeldLocks(r.Held); err != nil {
		return askRecord{}, fmt.Errorf("an ask's record: %w", err)
	}
	if r.Lock, err = pathBelow(root, r.Lock); err != nil {
		return askRecord{}, err
	}
	if r.Node != "" {
		if r.Node, err = pathBelow(root, r.Node); err != nil {
			return askRecord{}, err
		}
	}
	var held []heldLock
	for _, h := range r.Held {
		if h, err := h.belowRoot(root); err == nil { // others cannot be seen from here
			held = append(held, h)
		}
	}
	r.Held = held
	return r, nil
}

// belowRoot returns the held lock with its paths below root.
func (h heldLock) belowRoot(root string) (heldLock, error) {
	var err error
	if h.Lock, err = pathBelow(root, h.Lock); err == nil {
		h.Node, err = pathBelow(root, h.Node)
	}
	return h, err
}

// rootedPath is a client's path with its root.
func rootedPath(root, path string) string {
	return znode.Join(root, strings.TrimPrefix(path, "/"))
}

// pathBelow removes root from a path that begins with it.
func pathBelow(root, full string) (string, error) {
	path := full
	if root != "" && root != "/" {
		rest, ok := strings.CutPrefix(full, root)
		if !ok || !strings.HasPrefix(rest, "/") {
			return "", fmt.Errorf("%w %q: it is not below %s", framework.ErrInvalidPath, full, root)
		}
		path = rest
	}
	return path, framework.ValidatePath(path)
}
