package queuelayout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzDecodeProgress(f *testing.F) {
	for _, text := range []string{"", `{"v":1,"lines":{"items":[0,17],"redo":[2,0]}}`, `{"v":1}`, `{"v":2}`,
		`{"lines":{"":[-1,9e99]}}`, `[`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := DecodeProgress(data)
		if err != nil {
			return
		}
		again, err := DecodeProgress(p.Encode())
		require.NoError(t, err)
		require.Equal(t, p.Chains, again.Chains)
		segment := Chain{Dir: "/q/items"}.Segment(3)
		p.SetClaimed(Item{segment, 5})
		require.True(t, p.Covers(Item{segment, 5}))
		require.True(t, p.Covers(Item{segment.Chain.Segment(2), 9}))
		require.False(t, p.Covers(Item{segment, 6}))
		require.False(t, p.Covers(Item{segment.Chain.Segment(4), 0}))
	})
}
