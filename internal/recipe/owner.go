package recipe

import (
	"os"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/stored"
)

// Owner describes the process that has written a record, within that record. Fields that are not
// known are left out.
type Owner struct {
	Identity string `json:"owner,omitempty"` // of the client
	Host     string `json:"host,omitempty"`
	PID      int    `json:"pid,omitempty"`
}

// OwnerOf describes this process with a client of it.
func OwnerOf(client *framework.Client) Owner {
	return Owner{client.Config().Identity, host(), os.Getpid()}
}

// host is this machine's name, or "" when it is not known.
var host = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return stored.Text(name)
})
