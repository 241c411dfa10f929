package locks

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"
)

// Owner is what a lock's contender writes into its node, as JSON. Unknown fields of later versions
// are ignored.
type Owner struct {
	// Version of the record.
	Version int `json:"v"`
	// Owner is the client's Identity.
	Owner string `json:"owner"`
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	// Since is when the contender asked, by its own clock.
	Since time.Time `json:"since"`
	// Trace is the trace context of whoever asked, as its propagators write it.
	Trace map[string]string `json:"trace,omitempty"`
}

const ownerVersion = 1

// ParseOwner reads a contender's data; ok is false for data that somebody else has written.
func ParseOwner(data []byte) (o Owner, ok bool) {
	if err := json.Unmarshal(data, &o); err != nil || o.Version < 1 {
		return Owner{}, false
	}
	return o, true
}

// host is this machine's name, or "" when it is not known.
var host = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return name
})

// ownerRecord returns what a contender writes into its node.
func (l *Line) ownerRecord(ctx context.Context) []byte {
	if l.data != nil {
		return l.data
	}
	data, err := json.Marshal(Owner{
		Version: ownerVersion, Owner: l.client.Config().Identity, Host: host(), PID: os.Getpid(),
		Since: time.Now().UTC(), Trace: l.traceContext(ctx),
	})
	if err != nil {
		panic("locks: an owner cannot be written: " + err.Error()) // it has only strings and numbers
	}
	return data
}
