package waitline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOrderFollowsTheNumbersNotTheNames(t *testing.T) {
	line, err := Filter{Kind: Mutex}.inOrder([]string{"_c_b-lock-0000000002", "_c_z-lock-0000000000",
		"_c_a-lock-0000000010"})
	require.NoError(t, err)
	require.Equal(t, []int32{0, 2, 10}, numbers(line))
}

// TestOrderWraps would fail if names or plain numbers were compared: -2147483648 would come before
// 2147483647, and two clients would hold the lock.
func TestOrderWraps(t *testing.T) {
	names := []string{"_c_a-lock--2147483647", "_c_b-lock-2147483646", "_c_c-lock--2147483648", "_c_d-lock-2147483647"}
	line, err := Filter{Kind: Mutex}.inOrder(names)
	require.NoError(t, err)
	require.Equal(t, []int32{math.MaxInt32 - 1, math.MaxInt32, math.MinInt32, math.MinInt32 + 1}, numbers(line))
}

func TestForeignChildrenAreNotCounted(t *testing.T) {
	line, err := Filter{Kind: Mutex}.inOrder([]string{
		"", "readme", "lock-", "lock-1", "lock-00000000001234", "x-lock-00000000ab", "_c_u-lock-9999999999",
		"_c_u-lock-0000000007", "tmp-0000000001", "lock-+000000001",
	})
	require.NoError(t, err)
	require.Equal(t, []int32{7}, numbers(line))
}

func TestAMixtureIsRefused(t *testing.T) {
	_, err := Filter{Kind: Mutex}.inOrder([]string{"_c_a-lock-0000000000", "_c_b-__WRIT__0000000001"})
	require.ErrorIs(t, err, ErrKindMixed)
	require.ErrorContains(t, err, "_c_b-__WRIT__0000000001")
	_, err = Filter{Kind: Mutex}.inOrder([]string{"_c_a-latch-0000000000"})
	require.ErrorIs(t, err, ErrKindMixed)
}

// TestARefusedViewShowsNothing lists the contender itself before one of another kind. viewFrom must
// not return what it has seen until then: that view would show the contender as the first in line.
func TestARefusedViewShowsNothing(t *testing.T) {
	me, ok := ParsePosition("_c_a-__READ__0000000001")
	require.True(t, ok)
	v, err := viewFrom([]string{me.Name, "_c_b-lock-0000000000"}, Filter{Kind: me.Kind}, me)
	require.ErrorIs(t, err, ErrKindMixed)
	require.Equal(t, lineView{}, v)
}

// TestViewAgreesWithTheOrder compares the view from every position of shuffled lines with the
// sorted line.
func TestViewAgreesWithTheOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		names := []string{"readme"}
		for seq := range r.IntN(12) {
			names = append(names, fmt.Sprintf("_c_%d-lock-%010d", r.Int(), int32(math.MaxInt32-5+seq))) // wraps
		}
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		line, err := Filter{Kind: Mutex}.inOrder(names)
		require.NoError(t, err)
		for i, from := range line {
			v, err := viewFrom(names, Filter{Kind: from.Kind}, from)
			require.NoError(t, err)
			require.True(t, v.known)
			require.Equal(t, i, v.ahead)
			if i > 0 {
				require.Equal(t, line[i-1], v.predecessor)
			}
			if i > 1 {
				require.Equal(t, line[i-2], v.secondPredecessor)
			}
		}
	}
	v, err := viewFrom([]string{"_c_a-lock-0000000001"}, Filter{Kind: Mutex},
		Position{"_c_b-lock-0000000002", "lock-", 2})
	require.NoError(t, err)
	require.False(t, v.known)
}

func numbers(line []Position) (out []int32) {
	for _, p := range line {
		out = append(out, p.Seq)
	}
	return out
}

func FuzzOrder(f *testing.F) {
	f.Add("_c_a-lock-0000000001", "_c_b-latch-0000000002")
	f.Add("lock--000000001", "__READ__2147483647")
	f.Fuzz(func(t *testing.T, a, b string) {
		line, err := Filter{Kind: Mutex}.inOrder([]string{a, b})
		if err != nil {
			require.ErrorIs(t, err, ErrKindMixed)
			return
		}
		for _, p := range line {
			again, ok := ParsePosition(p.Name)
			require.True(t, ok)
			require.Equal(t, p, again)
		}
	})
}
