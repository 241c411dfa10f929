package queue

import (
	"encoding/json"
	"fmt"
	"maps"
)

// claimProgress is how far the lines of a strict queue were claimed, the data of <path>/claimed: each item up to the position of its line was claimed once.
// The holder of the lock writes it with each claim, so a claim costs the same for any number of items.
type claimProgress struct {
	V int `json:"v"`
	// Lines are the positions by the lines' names.
	Lines map[string]position `json:"lines"`
}

// position is the number of a segment, and that of an item in it.
type position [2]int64

const progressVersion = 1

// decodeProgress reads what encode has written. Its errors wrap ErrNotQueue or ErrNewer.
func decodeProgress(data []byte) (p claimProgress, err error) {
	if len(data) == 0 {
		return claimProgress{V: progressVersion, Lines: map[string]position{}}, nil
	}
	if err := json.Unmarshal(data, &p); err != nil || p.V < 1 {
		return p, fmt.Errorf("%w: its %s cannot be read: %.80q", ErrNotQueue, claimedNode, data)
	}
	if p.V > progressVersion {
		return p, fmt.Errorf("%w: %s of version %d, this release reads %d", ErrNewer, claimedNode, p.V, progressVersion)
	}
	if p.Lines == nil {
		p.Lines = map[string]position{}
	}
	return p, nil
}

func (p claimProgress) encode() []byte {
	data, err := json.Marshal(p)
	if err != nil {
		panic("queue: numbers cannot be written: " + err.Error())
	}
	return data
}

func (p claimProgress) clone() claimProgress { return claimProgress{p.V, maps.Clone(p.Lines)} }

// covers reports whether an item was claimed before.
func (p claimProgress) covers(item itemID) bool {
	to, known := p.Lines[item.at.line.name()]
	return known && (item.at.n < to[0] || item.at.n == to[0] && item.k <= to[1])
}

// reach notes that an item, and all before it in its line, are claimed.
func (p claimProgress) reach(item itemID) { p.Lines[item.at.line.name()] = position{item.at.n, item.k} }

// lower notes that an item, and all behind it in its line, are not claimed.
func (p claimProgress) lower(item itemID) {
	if p.covers(item) {
		p.reach(itemID{item.at, item.k - 1})
	}
}
