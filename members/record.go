package members

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/stored"
)

// recordVersion is the version of the records that this release writes.
const recordVersion = 1

// memberName ends the name of a member's node.
const memberName = "member"

// cordonPrefix begins the name of a cordon's node.
const cordonPrefix = "_cordon_"

// cordonName returns the name of a cordon's node. Characters that a path must not have are escaped
// as in a URL.
func cordonName(id string) string { return cordonPrefix + url.PathEscape(id) }

// memberRecord is the data of a member's node.
type memberRecord struct {
	ID       string            `json:"id"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Version  string            `json:"version,omitempty"`
	Load     float64           `json:"load,omitempty"`
}

func (r memberRecord) encode() ([]byte, error) { return recipe.Unknown(nil).Encode(recordVersion, r) }

// decodeMember decodes the data of a member's node. If another program has written it, the member's
// ID is the node's name. Of a newer release's record it decodes the fields that it knows.
func decodeMember(name string, data []byte) memberRecord {
	var r memberRecord
	_, err := recipe.Decode(data, recordVersion, &r)
	if err != nil && !errors.Is(err, framework.ErrNewer) || r.ID == "" {
		return memberRecord{ID: name}
	}
	return r
}

// cordonRecord is the data of a cordon's node.
type cordonRecord struct {
	ID      string `json:"id"`
	Request string `json:"request"`
	Drain   bool   `json:"drain,omitempty"`
	Reason  string `json:"reason,omitempty"`
	By      string `json:"by,omitempty"`
	// Answers are encoded answers: those of a newer release may have more fields than answerRecord.
	Answers map[string]json.RawMessage `json:"answers,omitempty"`

	version int            // of the record, or 0 for that of this release
	unknown recipe.Unknown // the fields of a newer release
}

// answerRecord is an Answer as it is stored. It and stateTexts stay as they are when the types and
// texts that applications see change.
type answerRecord struct {
	State string `json:"state"`
	Error string `json:"error,omitempty"`
}

var stateTexts = stored.Texts[State]{Cordoned: "cordoned", Drained: "drained", Failed: "failed"} // of answers

// encode returns the record with the fields that this release does not know. It keeps the version
// of a newer release's record: another member may need it to read these fields.
func (r cordonRecord) encode() ([]byte, error) {
	return r.unknown.Encode(max(r.version, recordVersion), r)
}

// decodeRecord decodes a cordon's record. Of a newer release's record it decodes the fields that it
// knows. Data that cannot be decoded are a record without a request.
func decodeRecord(data []byte) (r cordonRecord) {
	unknown, err := recipe.Decode(data, recordVersion, &r)
	if errors.Is(err, framework.ErrNewer) {
		var newer struct {
			Version int `json:"v"`
			cordonRecord
		}
		unknown, err = recipe.DecodeFields(data, &newer)
		r, r.version = newer.cordonRecord, newer.Version
	}
	if err != nil {
		return cordonRecord{}
	}
	r.unknown = unknown
	return r
}

// decodedAnswers returns the answers of a record. An answer that cannot be decoded is one without a
// state.
func (r cordonRecord) decodedAnswers() map[string]Answer {
	if r.Answers == nil {
		return nil
	}
	answers := make(map[string]Answer, len(r.Answers))
	for name, data := range r.Answers {
		var answer answerRecord
		_, _ = recipe.DecodeFields(data, &answer)
		answers[name] = Answer{stateTexts.ValueOf(answer.State), answer.Error}
	}
	return answers
}

// withAnswer encodes the record with the answer of the node called name, and without the answers of
// nodes other than the present ones.
func (r cordonRecord) withAnswer(name string, reply Answer, present []string) ([]byte, error) {
	encoded, err := json.Marshal(answerRecord{stateTexts.TextOf(reply.State), reply.Error})
	if err != nil {
		return nil, err
	}
	answers := map[string]json.RawMessage{name: encoded}
	for _, other := range present {
		if data, ok := r.Answers[other]; ok && other != name {
			answers[other] = data
		}
	}
	r.Answers = answers
	return r.encode()
}

// decodeCordon decodes a cordon's node. Data that cannot be decoded are a cordon with an unknown
// request all the same: the member takes no new work, and does not answer.
func decodeCordon(name string, data []byte, stat framework.Stat) *Cordon {
	r := decodeRecord(data)
	id, err := url.PathUnescape(strings.TrimPrefix(name, cordonPrefix))
	if err != nil {
		id = name
	}
	return &Cordon{
		ID: id, Drain: r.Drain && r.Request != "", Reason: r.Reason, By: r.By, Since: stat.Ctime.UTC(),
		Answers: r.decodedAnswers(),
		request: r.Request, zxid: stat.Mzxid, version: stat.Version, recordVersion: r.version,
		encodedAnswers: r.Answers,
		unknown:        r.unknown,
	}
}

// toRecord returns the record that decodeCordon has read the cordon from.
func (c *Cordon) toRecord() cordonRecord {
	return cordonRecord{
		ID: c.ID, Request: c.request, Drain: c.Drain, Reason: c.Reason, By: c.By, Answers: c.encodedAnswers,
		version: c.recordVersion, unknown: c.unknown,
	}
}
