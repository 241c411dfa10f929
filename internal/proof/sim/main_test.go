package sim

import (
	"flag"
	"os"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// Flags; see the Makefile's target sim.
var (
	firstSeed    = flag.Uint64("seed", 1, "the first seed")
	seedCount    = flag.Int("runs", 0, "how many seeds; 0 runs seeds for half a minute")
	recipesFlag  = flag.String("recipes", "", "the recipes to run, separated by commas; all if empty")
	asJSON       = flag.Bool("json", false, "print the summary as JSON")
	untilRule    = flag.String("until", "", "the rule that a mutant must break, or any")
	idCount      = flag.Int64("ids", tenMillion, "how many ids TestTenMillionIDs gives at least")
	printHistory = flag.Bool("history", false, "print the history of each seed")
)

// TestMain runs everything on one processor, so that the goroutines of a seed take turns in nearly
// the same order in each run.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m)
}

// chosenRecipes returns the recipes to run.
func chosenRecipes() []string {
	if *recipesFlag == "" {
		return recipes()
	}
	return strings.Split(*recipesFlag, ",")
}

// stdout receives summaries and histories.
var stdout = os.Stdout
