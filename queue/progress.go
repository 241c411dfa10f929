package queue

import (
	"errors"
	"fmt"
	"maps"

	"github.com/lockstep-go/lockstep/internal/recipe"
)

// claimProgress is how far the chains of a strict queue were claimed, the data of <path>/claimed:
// each item up to the position of its chain was claimed once. The holder of the lock writes it with
// each claim, so a claim costs the same for any number of items.
type claimProgress struct {
	// Chains are the positions by the chains' names.
	Chains map[string]itemPosition `json:"lines"`

	unknown recipe.Unknown
}

// itemPosition is the number of a segment, and the number of an item in that segment.
type itemPosition [2]int64

const progressVersion = 1

// decodeProgress reads what encode has written. Its errors wrap ErrNotQueue or ErrNewer.
func decodeProgress(data []byte) (p claimProgress, err error) {
	if len(data) == 0 {
		return claimProgress{Chains: map[string]itemPosition{}}, nil
	}
	p.unknown, err = recipe.Decode(data, progressVersion, &p)
	if errors.Is(err, ErrNewer) {
		return p, fmt.Errorf("%s: %w", claimedNode, err)
	}
	if err != nil {
		return p, fmt.Errorf("%w: its %s cannot be read: %.80q", ErrNotQueue, claimedNode, data)
	}
	if p.Chains == nil {
		p.Chains = map[string]itemPosition{}
	}
	return p, nil
}

func (p claimProgress) encode() []byte {
	data, err := p.unknown.Encode(progressVersion, p)
	if err != nil {
		panic("queue: numbers cannot be written: " + err.Error())
	}
	return data
}

func (p claimProgress) clone() claimProgress { return claimProgress{maps.Clone(p.Chains), p.unknown} }

// covers reports whether an item was claimed before.
func (p claimProgress) covers(item itemID) bool {
	to, known := p.Chains[item.at.chain.name()]
	return known && (item.at.n < to[0] || item.at.n == to[0] && item.k <= to[1])
}

// noteClaimed notes that an item, and all before it in its chain, are claimed.
func (p claimProgress) noteClaimed(item itemID) {
	p.Chains[item.at.chain.name()] = itemPosition{item.at.n, item.k}
}

// noteUnclaimed notes that an item, and all behind it in its chain, are not claimed.
func (p claimProgress) noteUnclaimed(item itemID) {
	if p.covers(item) {
		p.noteClaimed(itemID{item.at, item.k - 1})
	}
}
