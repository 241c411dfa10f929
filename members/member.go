package members

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"time"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/internal/stored"
)

// Info is a member's description of itself.
type Info struct {
	// Metadata describes the member to others, such as its address and its zone. Keys are not
	// empty; keys and values are UTF-8.
	Metadata map[string]string
	// Version is the version of the member's program, in UTF-8.
	Version string
	// Load says how busy the member is, in a unit that the group's programs agree on. It is finite.
	Load float64
}

// MaxInfo is how many bytes an Info may have, encoded as JSON.
const MaxInfo = 64 << 10

func (i Info) cloneInfo() Info {
	i.Metadata = maps.Clone(i.Metadata)
	return i
}

func (i Info) checkInfo() error {
	if err := stored.CheckMetadata(i.Metadata); err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	switch {
	case !utf8.ValidString(i.Version):
		return fmt.Errorf("%w: the version %q is not UTF-8", errInvalid, i.Version)
	case math.IsNaN(i.Load) || math.IsInf(i.Load, 0):
		return fmt.Errorf("%w: a load of %v, it must be finite", errInvalid, i.Load)
	}
	data, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	if len(data) > MaxInfo {
		return fmt.Errorf("%w: %d bytes as JSON, at most %d are allowed", errInvalid, len(data), MaxInfo)
	}
	return nil
}

// maxID is how many bytes an ID may have. It is a part of the name of the cordon's node.
const maxID = 1 << 10

func checkID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: the id is empty", errInvalid)
	case len(id) > maxID:
		return fmt.Errorf("%w: the id has %d bytes, at most %d are allowed", errInvalid, len(id), maxID)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: the id %q is not UTF-8", errInvalid, id)
	}
	return nil
}

// Member is one member of a group.
type Member struct {
	// ID is the member's name.
	ID string `json:"id"`
	// Info is the member's description of itself.
	Info Info `json:"-"`
	// Node is the path of its node, which stays the same until the member leaves or its session
	// ends.
	Node string `json:"node"`
	// Session is the number of its session.
	Session framework.SessionID `json:"session"`
	// Joined is when its node was created, by the clock of the ensemble's leader: each session of a
	// member creates another node. Changed is when the node was last written.
	Joined  time.Time `json:"joined,omitzero"`
	Changed time.Time `json:"changed,omitzero"`
	// Zxid is the newest transaction that wrote the member or its cordon.
	Zxid int64 `json:"zxid,omitempty"`
	// Others counts further nodes with this ID: of a former session that has not ended yet, or of
	// another process that was given the same ID. The newest node is shown.
	Others int `json:"others,omitempty"`
	// State says whether the member is in service.
	State State `json:"state"`
	// Cordon is an operator's request to the member, or nil.
	Cordon *Cordon `json:"cordon,omitempty"`

	czxid, mzxid int64 // the transactions that created its node and last wrote it
}

// MarshalJSON returns the member with the fields of Info among its own.
func (m Member) MarshalJSON() ([]byte, error) {
	type fields Member
	m.Joined, m.Changed = reportjson.Time(m.Joined), reportjson.Time(m.Changed)
	return json.Marshal(struct {
		fields
		Version  string            `json:"version,omitempty"`
		Load     float64           `json:"load"`
		Metadata map[string]string `json:"metadata,omitempty"`
	}{fields(m), m.Info.Version, m.Info.Load, m.Info.Metadata})
}

// State says whether a member is in service.
type State string

// The states of a member.
const (
	Active    State = "active"
	Cordoning State = "cordoning" // it was asked to take no new work, and has not answered yet
	Cordoned  State = "cordoned"  // it has answered that it takes no new work
	Draining  State = "draining"  // it was asked to finish its work, and has not answered yet
	Drained   State = "drained"   // it has answered that it has finished its work
	Failed    State = "failed"    // it has answered that its drain has failed
)

// Cordon is an operator's request to a member.
type Cordon struct {
	// ID is the member's ID. The member need not be listed.
	ID string `json:"id"`
	// Drain is true if the member is asked to finish its work, too.
	Drain bool `json:"drain"`
	// Reason is the text of WithReason. By is the Identity of the client that wrote the
	// request.
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	// Since is when the ID was cordoned, by the clock of the ensemble's leader. A drain of a
	// cordoned member does not change it.
	Since time.Time `json:"since,omitzero"`
	// Answers are the answers to this request, by the names of the members' nodes.
	Answers map[string]Answer `json:"answers,omitempty"`

	request string // a UUID that no other request has; "" if the node's data cannot be read
	zxid    int64  // the transaction that last wrote the node
	version int32  // of the node

	recordVersion int // of the node's data, or 0 for that of this release
	// Answers as they were read, with the fields of a newer release; nobody changes the map
	encodedAnswers map[string]json.RawMessage
	unknown        recipe.Unknown // the fields of a newer release; nobody changes the map
}

// MarshalJSON returns the fields of the cordon.
func (c Cordon) MarshalJSON() ([]byte, error) {
	type fields Cordon
	c.Since = reportjson.Time(c.Since)
	return json.Marshal(fields(c))
}

// Answer is a member's answer to a request.
type Answer struct {
	// State is Cordoned, Drained or Failed.
	State State `json:"state"`
	// Error says why a drain has failed.
	Error string `json:"error,omitempty"`
}

// stateOf returns the state of a member with these nodes, by their names; there is at least one.
// The member is cordoned or drained once all its nodes have answered so.
func (c *Cordon) stateOf(nodes []string) State {
	if c == nil {
		return Active
	}
	done, pending := Cordoned, Cordoning
	if c.Drain {
		done, pending = Drained, Draining
	}
	state := done
	for _, node := range nodes {
		switch answer := c.Answers[node].State; {
		case answer == Failed && c.Drain:
			return Failed
		case answer == "", c.Drain && answer != Drained:
			state = pending
		}
	}
	return state
}

// isDrained reports whether one of the answers is Drained.
func (c *Cordon) isDrained() bool {
	for _, answer := range c.Answers {
		if answer.State == Drained {
			return true
		}
	}
	return false
}

func (c *Cordon) cloneCordon() *Cordon {
	if c == nil {
		return nil
	}
	copied := *c
	copied.Answers = maps.Clone(c.Answers)
	return &copied
}

func (m Member) cloneMember() Member {
	m.Info, m.Cordon = m.Info.cloneInfo(), m.Cordon.cloneCordon()
	return m
}
