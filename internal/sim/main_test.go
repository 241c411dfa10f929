package sim

import (
	"flag"
	"os"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// What is run; see the Makefile's target sim.
var (
	firstSeed    = flag.Uint64("seed", 1, "the first seed")
	seedCount    = flag.Int("runs", 0, "how many seeds; 0 is a few, for CI")
	recipesFlag  = flag.String("recipes", "", "the recipes that are played, with commas between; all if empty")
	asJSON       = flag.Bool("json", false, "end with a summary in JSON")
	untilRule    = flag.String("until", "", "the rule that a mutant is to break, or any")
	printHistory = flag.Bool("history", false, "print the history of each seed")
)

// TestMain runs everything on one processor: a seed's goroutines then take turns in nearly the same order in
// each run.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m)
}

// chosenRecipes are the recipes that were asked for.
func chosenRecipes() []string {
	if *recipesFlag == "" {
		return recipes()
	}
	return strings.Split(*recipesFlag, ",")
}

// stdout is where people and programs read.
var stdout = os.Stdout
