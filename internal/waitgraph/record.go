package waitgraph

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/stored"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Held is a node that a caller holds while it requests another lock. Paths include the client's
// root: processes may have different roots.
type Held struct {
	Lock string `json:"lock"` // the lock's path
	Node string `json:"node"`
	Zxid int64  `json:"zxid"` // the transaction that created the node
	Turn int64  `json:"-"`    // of a slice, or 0
}

// MaxHeld bounds the held locks in one record.
const MaxHeld = 200

// CheckHeld refuses held locks that no lease can have.
func CheckHeld(all []Held) error {
	if len(all) > MaxHeld {
		return fmt.Errorf("%d of them, at most %d are allowed", len(all), MaxHeld)
	}
	for _, h := range all {
		if err := errors.Join(framework.ValidatePath(h.Lock), framework.ValidatePath(h.Node)); err != nil {
			return err
		}
		if h.Zxid <= 0 {
			return fmt.Errorf("%s: the transaction %d is not one", h.Node, h.Zxid)
		}
	}
	return nil
}

// record is what a lock request stores about itself, as JSON. Each write states facts that stay
// true: after the transaction Seen, the request still waited with this node, and its caller held
// these nodes. Unknown fields of later versions are ignored.
type record struct {
	Version int    `json:"v"`
	Lock    string `json:"lock"` // the lock that it waits for; paths include the client's root
	LineNode
	Permits int    `json:"permits,omitempty"` // of a semaphore, how many it wants
	Held    []Held `json:"held"`
	Seen    int64  `json:"seen,omitempty"`   // the last transaction of a cycle that it has seen itself in
	Report  bool   `json:"report,omitempty"` // it does not fail: DeadlockReport
	recipe.Owner
	Since time.Time `json:"since"`
}

// LineNode is the node with which a request waits in line. The request of a claim has no node.
type LineNode struct {
	Node  string `json:"node,omitempty"`
	Zxid  int64  `json:"zxid,omitempty"`  // the transaction that created it
	Slice bool   `json:"slice,omitempty"` // the node is of a slice, for whose turn it waits
}

const recordVersion = 1

func (r record) encode() []byte {
	data, err := json.Marshal(r)
	if err != nil {
		panic("waitgraph: a record cannot be encoded: " + err.Error()) // strings, numbers and times
	}
	return data
}

// parseRecord reads a record that anybody may have written. Its paths become those below root.
func parseRecord(data []byte, root string) (r record, err error) {
	if err := json.Unmarshal(data, &r); err != nil {
		return record{}, fmt.Errorf("a lock request's record: %w", err)
	}
	if r.Version < 1 || r.Permits < 0 {
		return record{}, fmt.Errorf("a lock request's record of version %d for %d permits", r.Version, r.Permits)
	}
	r.Since = stored.Time(r.Since)
	if err := CheckHeld(r.Held); err != nil {
		return record{}, fmt.Errorf("a lock request's record: %w", err)
	}
	if r.Lock, err = belowRoot(root, r.Lock); err != nil {
		return record{}, err
	}
	if r.Node != "" {
		if r.Node, err = belowRoot(root, r.Node); err != nil {
			return record{}, err
		}
	}
	var held []Held
	for _, h := range r.Held {
		if h, err := h.below(root); err == nil { // others cannot be seen from here
			held = append(held, h)
		}
	}
	r.Held = held
	return r, nil
}

// below returns the held lock with its paths below root.
func (h Held) below(root string) (Held, error) {
	var err error
	if h.Lock, err = belowRoot(root, h.Lock); err == nil {
		h.Node, err = belowRoot(root, h.Node)
	}
	return h, err
}

// WithRoot is a client's path with its root.
func WithRoot(root, path string) string {
	return znode.Join(root, strings.TrimPrefix(path, "/"))
}

// belowRoot removes root from a path that begins with it.
func belowRoot(root, full string) (string, error) {
	path := full
	if root != "" && root != "/" {
		rest, ok := strings.CutPrefix(full, root)
		if !ok || !strings.HasPrefix(rest, "/") {
			return "", fmt.Errorf("%w %q: it is not below %s", failure.ErrInvalidPath, full, root)
		}
		path = rest
	}
	return path, framework.ValidatePath(path)
}
