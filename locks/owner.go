package locks

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/stored"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

// ownerRecord is what a lock's contender writes into its node, as JSON. Unknown fields of later
// versions are ignored.
type ownerRecord struct {
	// Version of the record.
	Version int `json:"v"`
	recipe.Owner
	// Since is when the contender joined, by its own clock.
	Since time.Time `json:"since"`
	// Trace is the caller's trace context, in the form of its propagators.
	Trace map[string]string `json:"trace,omitempty"`
	// Revoked says that another client has asked the owner to release; see Revoke.
	Revoked bool `json:"revoked,omitempty"`
}

const ownerVersion = 1

// parseOwner reads a contender's data. It reports false for data of another form.
func parseOwner(data []byte) (o ownerRecord, ok bool) {
	if err := json.Unmarshal(data, &o); err != nil || o.Version < 1 {
		return ownerRecord{}, false
	}
	o.Since = stored.Time(o.Since)
	return o, true
}

// revokeMark is what Curator's Revoker writes into the node of a holder to request its release.
var revokeMark = []byte("__REVOKE__")

// isRevoked reports whether a node's data requests the release of its holder.
func isRevoked(data []byte) bool {
	o, ok := parseOwner(data)
	return ok && o.Revoked || bytes.Equal(data, revokeMark)
}

// withRevocation returns a node's data with the request for its holder's release. It keeps each
// byte of the owner's record: the field is the last one, and so the one that counts. Other data
// become Curator's mark.
func withRevocation(data []byte) []byte {
	switch o, ok := parseOwner(data); {
	case !ok:
		return revokeMark
	case o.Revoked:
		return data
	}
	fields := bytes.TrimSuffix(bytes.TrimSpace(data), []byte("}")) // a version at least
	return append(bytes.Clone(fields), `,"revoked":true}`...)
}

// encodeOwner describes the client's process, for a contender's node.
func encodeOwner(ctx context.Context, client *framework.Client) []byte {
	data, err := json.Marshal(ownerRecord{
		Version: ownerVersion, Owner: recipe.OwnerOf(client), Since: time.Now().UTC(),
		Trace: waitline.TraceContext(ctx, client),
	})
	if err != nil {
		panic("locks: an owner cannot be encoded: " + err.Error()) // it has only strings and numbers
	}
	return data
}
