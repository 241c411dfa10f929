package recipe

import (
	"os"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// Owner describes the process that has written a record.
type Owner struct {
	// Identity is that of the client.
	Identity string `json:"owner"`
	Host     string `json:"host"` // "" if it is not known
	PID      int    `json:"pid"`
}

// OwnerOf describes this process with a client of it.
func OwnerOf(client *framework.Client) Owner {
	return Owner{client.Config().Identity, host(), os.Getpid()}
}

// host is this machine's name, or "" when it is not known.
var host = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return name
})
