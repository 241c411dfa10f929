package members

import (
	"errors"
	"net/url"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// recordVersion is the version of the records that this release writes.
const recordVersion = 1

// memberName ends the name of a member's node.
const memberName = "member"

// cordonPrefix begins the name of a cordon's node.
const cordonPrefix = "_cordon_"

// cordonName returns the name of a cordon's node. Characters that a path must not have are escaped as in a URL.
func cordonName(id string) string { return cordonPrefix + url.PathEscape(id) }

// memberRecord is the data of a member's node.
type memberRecord struct {
	ID       string   `json:"id"`
	Metadata Metadata `json:"metadata,omitempty"`
	Version  string   `json:"version,omitempty"`
	Load     float64  `json:"load,omitempty"`
}

func (r memberRecord) encode() ([]byte, error) { return recipe.Unknown(nil).Encode(recordVersion, r) }

// decodeMember decodes the data of a member's node. If another program has written it, the member's ID is the node's name. Of a newer release's record it decodes the fields that it knows.
func decodeMember(name string, data []byte) memberRecord {
	var r memberRecord
	if _, err := recipe.Decode(data, recordVersion, &r); err != nil && !errors.Is(err, recipe.ErrNewer) || r.ID == "" {
		return memberRecord{ID: name}
	}
	return r
}

// cordonRecord is the data of a cordon's node.
type cordonRecord struct {
	ID      string            `json:"id"`
	Request string            `json:"request"`
	Drain   bool              `json:"drain,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	By      string            `json:"by,omitempty"`
	Answers map[string]Answer `json:"answers,omitempty"`
}

func (r cordonRecord) encode() ([]byte, error) { return recipe.Unknown(nil).Encode(recordVersion, r) }

// decodeCordon decodes a cordon's node. Data that cannot be decoded is a cordon with an unknown request all the same: the member takes no new work, and does not answer.
func decodeCordon(name string, data []byte, st framework.Stat) *Cordon {
	var r cordonRecord
	if _, err := recipe.Decode(data, recordVersion, &r); err != nil && !errors.Is(err, recipe.ErrNewer) {
		r = cordonRecord{}
	}
	id, err := url.PathUnescape(strings.TrimPrefix(name, cordonPrefix))
	if err != nil {
		id = name
	}
	return &Cordon{
		ID: id, Drain: r.Drain && r.Request != "", Reason: r.Reason, By: r.By, Since: st.Ctime.UTC(), Answers: r.Answers,
		request: r.Request, zxid: st.Mzxid, version: st.Version,
	}
}

// storedRecord returns the record that decodeCordon has read the cordon from.
func (c *Cordon) storedRecord() cordonRecord {
	return cordonRecord{ID: c.ID, Request: c.request, Drain: c.Drain, Reason: c.Reason, By: c.By, Answers: c.Answers}
}
