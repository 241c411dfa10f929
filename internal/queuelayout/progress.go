package queuelayout

import (
	"errors"
	"fmt"
	"maps"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Progress is how far the chains of a strict queue were claimed, the data of <path>/claimed:
// each item up to the position of its chain was claimed once. The holder of the lock writes it with
// each claim, so a claim costs the same for any number of items.
type Progress struct {
	// Chains are the positions by the chains' names.
	Chains map[string]itemPosition `json:"lines"`

	unknown recipe.Unknown
}

// itemPosition is the number of a segment, and the number of an item in that segment.
type itemPosition [2]int64

const progressVersion = 1

// DecodeProgress reads what encode has written. Its errors wrap ErrNotQueue or framework.ErrNewer.
func DecodeProgress(data []byte) (p Progress, err error) {
	if len(data) == 0 {
		return Progress{Chains: map[string]itemPosition{}}, nil
	}
	p.unknown, err = recipe.Decode(data, progressVersion, &p)
	if errors.Is(err, framework.ErrNewer) {
		return p, fmt.Errorf("%s: %w", claimedName, err)
	}
	if err != nil {
		return p, fmt.Errorf("%w: its %s cannot be read: %.80q", ErrNotQueue, claimedName, data)
	}
	if p.Chains == nil {
		p.Chains = map[string]itemPosition{}
	}
	return p, nil
}

func (p Progress) Encode() []byte {
	data, err := p.unknown.Encode(progressVersion, p)
	if err != nil {
		panic("queue: numbers cannot be written: " + err.Error())
	}
	return data
}

func (p Progress) Clone() Progress { return Progress{maps.Clone(p.Chains), p.unknown} }

// Covers reports whether an item was claimed before.
func (p Progress) Covers(item Item) bool {
	to, known := p.Chains[item.Segment.Chain.Name()]
	return known && (item.Segment.Number < to[0] || item.Segment.Number == to[0] && item.Number <= to[1])
}

// SetClaimed records that an item, and all before it in its chain, are claimed.
func (p Progress) SetClaimed(item Item) {
	p.Chains[item.Segment.Chain.Name()] = itemPosition{item.Segment.Number, item.Number}
}

// SetUnclaimed records that an item, and all behind it in its chain, are not claimed.
func (p Progress) SetUnclaimed(item Item) {
	if p.Covers(item) {
		p.SetClaimed(Item{item.Segment, item.Number - 1})
	}
}
