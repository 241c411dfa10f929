package locks

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// ownerRecord is what a lock's contender writes into its node, as JSON. Unknown fields of later versions are ignored.
type ownerRecord struct {
	// Version of the record.
	Version int `json:"v"`
	// Owner is the client's Identity.
	Owner string `json:"owner"`
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	// Since is when the contender joined, by its own clock.
	Since time.Time `json:"since"`
	// Trace is the caller's trace context, in the form of its propagators.
	Trace map[string]string `json:"trace,omitempty"`
}

const ownerVersion = 1

// parseOwner reads a contender's data. It reports false for data of another form.
func parseOwner(data []byte) (o ownerRecord, ok bool) {
	if err := json.Unmarshal(data, &o); err != nil || o.Version < 1 {
		return ownerRecord{}, false
	}
	return o, true
}

// host is this machine's name, or "" when it is not known.
var host = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return name
})

// encodeOwner describes the client's process, for a contender's node.
func encodeOwner(ctx context.Context, client *framework.Client) []byte {
	data, err := json.Marshal(ownerRecord{
		Version: ownerVersion, Owner: client.Config().Identity, Host: host(), PID: os.Getpid(),
		Since: time.Now().UTC(), Trace: waitline.TraceContext(ctx, client),
	})
	if err != nil {
		panic("locks: an owner cannot be encoded: " + err.Error()) // it has only strings and numbers
	}
	return data
}
