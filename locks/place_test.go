package locks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOrderFollowsTheNumbersNotTheNames(t *testing.T) {
	line, err := contendersInOrder([]string{"_c_b-lock-0000000002", "_c_z-lock-0000000000", "_c_a-lock-0000000010"}, kindFilter{kind: "lock-"})
	require.NoError(t, err)
	require.Equal(t, []int32{0, 2, 10}, numbers(line))
}

// TestOrderWraps would fail with strings: -2147483648 sorts before 2147483647, and two clients would
// hold the lock.
func TestOrderWraps(t *testing.T) {
	names := []string{"_c_a-lock--2147483647", "_c_b-lock-2147483646", "_c_c-lock--2147483648", "_c_d-lock-2147483647"}
	line, err := contendersInOrder(names, kindFilter{kind: "lock-"})
	require.NoError(t, err)
	require.Equal(t, []int32{math.MaxInt32 - 1, math.MaxInt32, math.MinInt32, math.MinInt32 + 1}, numbers(line))
}

func TestForeignChildrenAreNotCounted(t *testing.T) {
	line, err := contendersInOrder([]string{
		"", "readme", "lock-", "lock-1", "lock-00000000001234", "x-lock-00000000ab", "_c_u-lock-9999999999",
		"_c_u-lock-0000000007", "tmp-0000000001", "lock-+000000001",
	}, kindFilter{kind: "lock-"})
	require.NoError(t, err)
	require.Equal(t, []int32{7}, numbers(line))
}

func TestAMixtureIsRefused(t *testing.T) {
	_, err := contendersInOrder([]string{"_c_a-lock-0000000000", "_c_b-__WRIT__0000000001"}, kindFilter{kind: "lock-"})
	require.ErrorIs(t, err, ErrKindMixed)
	require.ErrorContains(t, err, "_c_b-__WRIT__0000000001")
	_, err = contendersInOrder([]string{"_c_a-latch-0000000000"}, kindFilter{kind: "lock-"})
	require.ErrorIs(t, err, ErrKindMixed)
}

// TestARefusedViewShowsNothing has the contender itself listed before the foreign one: seen alone, it was
// taken for the first in line once.
func TestARefusedViewShowsNothing(t *testing.T) {
	me, ok := parsePosition("_c_a-__READ__0000000001")
	require.True(t, ok)
	v, err := viewFrom([]string{me.name, "_c_b-lock-0000000000"}, kindFilter{kind: me.kind}, me)
	require.ErrorIs(t, err, ErrKindMixed)
	require.Equal(t, lineView{}, v)
}

// TestSeeAgreesWithOrder looks from every place of shuffled lines.
func TestSeeAgreesWithOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		names := []string{"readme"}
		for seq := range r.IntN(12) {
			names = append(names, fmt.Sprintf("_c_%d-lock-%010d", r.Int(), int32(math.MaxInt32-5+seq))) // wraps
		}
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		line, err := contendersInOrder(names, kindFilter{kind: "lock-"})
		require.NoError(t, err)
		for i, from := range line {
			v, err := viewFrom(names, kindFilter{kind: from.kind}, from)
			require.NoError(t, err)
			require.True(t, v.mine)
			require.Equal(t, i, v.ahead)
			if i > 0 {
				require.Equal(t, line[i-1], v.near)
			}
			if i > 1 {
				require.Equal(t, line[i-2], v.far)
			}
		}
	}
	v, err := viewFrom([]string{"_c_a-lock-0000000001"}, kindFilter{kind: "lock-"}, position{"_c_b-lock-0000000002", "lock-", 2})
	require.NoError(t, err)
	require.False(t, v.mine)
}

func numbers(line []position) (out []int32) {
	for _, p := range line {
		out = append(out, p.seq)
	}
	return out
}

func FuzzOrder(f *testing.F) {
	f.Add("_c_a-lock-0000000001", "_c_b-latch-0000000002")
	f.Add("lock--000000001", "__READ__2147483647")
	f.Fuzz(func(t *testing.T, a, b string) {
		line, err := contendersInOrder([]string{a, b}, kindFilter{kind: "lock-"})
		if err != nil {
			require.ErrorIs(t, err, ErrKindMixed)
			return
		}
		for _, p := range line {
			again, ok := parsePosition(p.name)
			require.True(t, ok)
			require.Equal(t, p, again)
		}
	})
}

func FuzzParseOwner(f *testing.F) {
	f.Add([]byte(`{"v":1,"owner":"a","host":"h","pid":1,"since":"2026-01-01T00:00:00Z","later":true}`))
	f.Add([]byte("192.0.2.1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if o, ok := ParseOwner(data); ok {
			require.GreaterOrEqual(t, o.Version, 1)
		}
	})
}
