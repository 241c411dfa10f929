package architecture

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// public are the packages that users build upon.
var public = []string{"framework", "locks", "election", "scheduler", "queue", "barrier"}

// modules are the packages that wire those into applications built with fx.
var modules = []string{"framework/frameworkfx", "locks/locksfx", "election/electionfx", "scheduler/schedulerfx", "queue/queuefx", "barrier/barrierfx"}

// arrows are what the packages of the module may import of one another. An entry holds for the
// directories below it that have no entry, and packages of one entry may import each other. Tests
// may import what they like.
var arrows = map[string][]string{
	".":         nil,
	"framework": {"internal/backoff", "internal/background", "internal/clock", "internal/lifetime", "internal/link", "internal/watchdog", "internal/wire"},
	"locks":     {"framework", "internal/lifetime", "internal/recipe", "internal/waitline"},
	"election":  {"framework", "locks", "internal/lifetime", "internal/recipe", "internal/waitline"},
	"scheduler": {"framework", "election", "internal/background", "internal/recipe"},
	"queue":     {"framework", "locks", "internal/background", "internal/lifetime", "internal/recipe"},
	"barrier":   {"framework", "locks", "internal/recipe"},
	"zktest":    {"framework", "internal/wire", "internal/zkserver"},

	"framework/frameworkfx": {"framework"},
	"locks/locksfx":         {"locks"},
	"election/electionfx":   {"framework", "election", "internal/appmodule"},
	"scheduler/schedulerfx": {"framework", "scheduler", "internal/appmodule"},
	"queue/queuefx":         {"framework", "queue"},
	"barrier/barrierfx":     {"barrier"},

	"bench":        with(public, "zktest"),
	"cmd":          public,
	"cmd/lockstep": with(public, "zktest", "internal/zkserver", "internal/procguard", "internal/terminal"),
	"examples":     with(public, "zktest", "internal/terminal", "framework/frameworkfx", "election/electionfx"),

	"internal/appmodule":    nil,
	"internal/architecture": nil,
	"internal/backoff":      nil,
	"internal/background":   nil,
	"internal/chaos":        nil, // tests only
	"internal/clock":        nil,
	"internal/conformance":  {"internal/wire"},
	"internal/ensemble":     nil,
	"internal/ensemble/cmd": {"internal/ensemble"},
	"internal/faults":       nil, // tests only
	"internal/interop":      nil, // its tests use all
	"internal/lifetime":     nil,
	"internal/link":         {"internal/wire"},
	"internal/model":        nil, // models and the test that searches them
	"internal/mutants":      nil,
	"internal/procguard":    nil,
	"internal/progress":     nil,
	"internal/recipe":       {"framework", "internal/backoff"},
	"internal/security":     nil, // tests only
	"internal/sim":          nil, // tests only
	"internal/soak":         {"internal/ensemble"},
	"internal/tally":        nil,
	"internal/terminal":     nil,
	"internal/testproc":     nil,
	"internal/watchdog":     {"internal/wire"},
	"internal/waitline":     {"framework", "internal/recipe"},
	"internal/wire":         nil,
	"internal/zkserver":     {"internal/wire"},
}

func with(packages []string, more ...string) []string { return slices.Concat(packages, more) }

// Arrows returns what is wrong with the imports between packages of the module.
func Arrows(files []File) (wrong []string) {
	for _, f := range files {
		if f.IsTest() {
			continue
		}
		room, known := roomOf(f.Dir())
		if !known {
			wrong = append(wrong, fmt.Sprintf("%s: package %s has no entry in arrows", f.Path, f.Dir()))
			continue
		}
		for _, imported := range f.Imports {
			if to, ok := inModule(imported); ok && !mayImport(room, to) {
				wrong = append(wrong, fmt.Sprintf("%s: %s may not import %s", f.Path, room, to))
			}
		}
	}
	return wrong
}

// roomOf is the entry that holds for a directory: its own or the nearest above it. The root's
// holds for the root alone.
func roomOf(dir string) (room string, known bool) {
	for d := dir; ; d = path.Dir(d) {
		if _, known := arrows[d]; known && (d != "." || dir == ".") {
			return d, true
		}
		if d == "." {
			return "", false
		}
	}
}

// inModule is the directory of a package of this module.
func inModule(imported string) (dir string, ok bool) {
	if imported == Module {
		return ".", true
	}
	return strings.CutPrefix(imported, Module+"/")
}

func mayImport(room, to string) bool {
	target, known := roomOf(to)
	return known && (target == room || slices.Contains(arrows[room], target))
}
