package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSeedsReplayTheirHistories runs seeds twice and logs how long their histories are equal. The
// runtime's own random choices, such as the branch of a select with several ready cases, are not
// the seed's; docs/proof.md has the figures. With -short it runs fewer seeds.
func TestSeedsReplayTheirHistories(t *testing.T) {
	seeds := 10
	if testing.Short() {
		seeds = 2
	}
	same, lines, common := 0, 0, 0
	for seed := range seeds {
		p := newPlan(uint64(1000+seed), chosenRecipes())
		first, second := run(t, p), run(t, p)
		a, b := first.history.all(), second.history.all()
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		lines, common = lines+max(len(a), len(b)), common+n
		if n == len(a) && n == len(b) {
			same++
		}
		require.Empty(t, first.violations)
		require.Empty(t, second.violations)
	}
	t.Logf("%d of %d seeds replay to the last line; %d %% of all lines precede the first difference", same, seeds,
		100*common/lines)
}

// TestPlanDependsOnItsSeedOnly: a plan is a function of its seed.
func TestPlanDependsOnItsSeedOnly(t *testing.T) {
	for seed := range uint64(100) {
		require.Equal(t, newPlan(seed, recipes()), newPlan(seed, recipes()))
	}
}
