package hold

import "github.com/lockstep-go/lockstep/framework"

// Holding is what is printed once a lock is held or a candidate leads.
type Holding struct {
	Path    string              `json:"path"`
	ID      string              `json:"id,omitempty"`
	Token   int64               `json:"token"`
	Session framework.SessionID `json:"session"`
}
