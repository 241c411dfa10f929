package architecture

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// public are the packages that users import.
var public = []string{"codec", "framework", "locks", "election", "scheduler", "queue", "barrier", "config", "ids",
	"registry", "members", "redislock", "workflow", "monitor"}

// modules are packages that link libraries, beside the public packages: for applications built with
// fx, for gRPC and for YAML.
var modules = []string{"framework/configfile", "framework/frameworkfx", "election/electionfx",
	"scheduler/schedulerfx", "queue/queuefx", "config/configfx", "registry/registryfx", "registry/registrygrpc",
	"members/membersfx", "workflow/workflowfx", "monitor/monitorfx"}

// forRecipes are the packages that each recipe may import.
var forRecipes = []string{"framework", "internal/failure", "internal/lifetime", "internal/metrics",
	"internal/moduleonly", "internal/primitives", "internal/recipe", "internal/reportjson", "internal/stored",
	"internal/usercode", "internal/znode"}

// forModules are the packages that each fx module may import, beside its recipe.
var forModules = []string{"framework", "internal/appmodule", "internal/drain"}

// commands are the packages of the command line's subcommands.
var commands = []string{"internal/cli/barrier", "internal/cli/check", "internal/cli/clean", "internal/cli/config",
	"internal/cli/cron", "internal/cli/dev", "internal/cli/doctor", "internal/cli/elect", "internal/cli/id",
	"internal/cli/lock", "internal/cli/members", "internal/cli/queue", "internal/cli/registry", "internal/cli/top",
	"internal/cli/ui", "internal/cli/watch", "internal/cli/workflow"}

// forCommands are the packages that each subcommand may import.
var forCommands = []string{"framework", "internal/cli", "internal/cli/hold", "internal/moduleonly",
	"internal/procguard", "internal/reportjson", "internal/sharedreport", "internal/terminal", "internal/znode"}

// arrows lists, for each directory, the packages of the module that its packages may import. An
// entry also applies to the directories below it that have no entry, and packages of one entry may
// import each other. Tests may import any package.
var arrows = map[string][]string{
	".":     {"framework", "internal/drain", "internal/failure", "internal/usercode"},
	"codec": nil,
	"framework": {"internal/backoff", "internal/background", "internal/backgroundlog", "internal/cleanup",
		"internal/clock", "internal/failure", "internal/lifetime", "internal/link", "internal/metrics",
		"internal/onsession", "internal/primitives", "internal/stored", "internal/watchdog", "internal/wire",
		"internal/znode"},
	"locks": with(forRecipes, "internal/cleanup", "internal/lockstore", "internal/queuelayout", "internal/waitgraph",
		"internal/waitline"),
	"election":  with(forRecipes, "locks", "internal/waitline"),
	"scheduler": with(forRecipes, "election", "internal/background", "internal/drain", "internal/joblayout"),
	"queue":     with(forRecipes, "codec", "locks", "internal/background", "internal/drain", "internal/queuelayout"),
	"barrier":   with(forRecipes, "locks"),
	"config":    with(forRecipes, "codec", "internal/lastgood"),
	"ids":       with(forRecipes, "internal/background"),
	"registry":  with(forRecipes, "internal/background", "internal/lastgood"),
	"members":   forRecipes,
	"workflow":  with(forRecipes, "codec", "internal/backoff", "locks", "queue"),
	"monitor":   with(forRecipes, "internal/survey", "locks", "election", "scheduler", "queue", "workflow"),
	"ui": {"codec", "framework", "internal/failure", "internal/fourletter", "internal/linediff",
		"internal/moduleonly", "internal/recipenode", "internal/reportjson", "internal/sharedreport", "internal/survey",
		"internal/znode", "locks", "election", "scheduler", "queue", "barrier", "workflow", "monitor", "members",
		"registry", "config"},
	"redislock": {"locks", "internal/backoff", "internal/clock", "internal/failure", "internal/lifetime",
		"internal/lockstore", "internal/primitives", "internal/usercode", "internal/waitline"},
	"zktest": {"framework", "internal/failure", "internal/wire", "internal/zkserver"},

	"framework/configfile":  {"framework"},
	"framework/frameworkfx": forModules,
	"election/electionfx":   with(forModules, "election", "internal/failure"),
	"scheduler/schedulerfx": with(forModules, "scheduler"),
	"queue/queuefx":         with(forModules, "queue"),
	"queue/curatorqueue":    with(forRecipes, "internal/queuelayout", "queue"),
	"config/configfx":       with(forModules, "codec", "config"),
	"registry/registryfx":   with(forModules, "registry"),
	"members/membersfx":     with(forModules, "members"),
	"workflow/workflowfx":   with(forModules, "workflow"),
	"monitor/monitorfx":     with(forModules, "monitor"),
	"registry/registrygrpc": {"framework", "registry"},

	"bench": with(public, "internal/failure", "zktest"),
	"bench/compare": {"codec", "framework", "config", "election", "ids", "locks", "queue", "redislock", "zktest",
		"internal/proof/ensemble"},
	"cmd":          public,
	"cmd/lockstep": with(commands, "framework", "internal/cli"),
	"examples": with(public, ".", "zktest", "internal/terminal", "framework/frameworkfx", "election/electionfx",
		"queue/queuefx", "scheduler/schedulerfx", "monitor/monitorfx", "ui"),

	"internal/appmodule":           {"internal/drain"},
	"internal/proof/architecture":  nil,
	"internal/backoff":             nil,
	"internal/background":          nil,
	"internal/backgroundlog":       {"internal/background"},
	"internal/proof/chaos":         nil, // tests only
	"internal/testkit/cleanuptest": {"framework", "zktest"},
	"internal/cleanup":             nil,
	"internal/testkit/descriptors": nil,
	"internal/clock":               nil,
	"internal/cli": {"barrier", "config", "election", "framework", "ids", "internal/procguard", "internal/reportjson",
		"internal/sharedreport", "internal/terminal", "internal/znode", "locks", "members", "monitor", "queue",
		"registry", "scheduler", "workflow"},
	"internal/cli/barrier": with(forCommands, "barrier", "locks"),
	"internal/cli/check":   with(forCommands, "monitor"),
	"internal/cli/clean":   with(forCommands, "internal/unused"),
	"internal/cli/config":  with(forCommands, "codec", "config", "internal/linediff", "internal/recipe"),
	"internal/cli/cron": with(forCommands, "internal/failure", "internal/joblayout", "internal/moduleonly",
		"internal/recipe", "scheduler"),
	"internal/cli/dev": with(forCommands, "internal/zksetting", "zktest"),
	"internal/cli/doctor": with(forCommands, "internal/cli/lock", "internal/fourletter", "internal/recipe", "locks",
		"monitor"),
	"internal/cli/elect": with(forCommands, "election", "internal/cli/lock", "locks"),
	"internal/cli/hold": {"election", "framework", "internal/cli", "internal/procguard",
		"internal/terminal", "locks"},
	"internal/cli/id":       with(forCommands, "ids"),
	"internal/cli/lock":     with(forCommands, "internal/recipenode", "locks"),
	"internal/cli/members":  with(forCommands, "locks", "members"),
	"internal/cli/queue":    with(forCommands, "codec", "locks", "monitor", "queue"),
	"internal/cli/registry": with(forCommands, "registry"),
	"internal/cli/top": with(forCommands, "election", "internal/cli/cron", "internal/cli/elect",
		"internal/cli/lock", "internal/cli/queue", "internal/cli/workflow", "internal/failure", "internal/survey",
		"locks", "queue", "scheduler", "workflow"),
	"internal/cli/ui":    with(forCommands, "internal/cli/doctor", "ui"),
	"internal/cli/watch": with(forCommands, "locks"),
	"internal/cli/workflow": with(forCommands, "internal/cli/queue", "internal/failure",
		"internal/queuelayout", "internal/survey", "locks", "workflow"),
	"internal/proof/conformance":   {"internal/wire"},
	"internal/metrics/dashboard":   {"internal/metrics"},
	"internal/proof/ensemble":      nil,
	"internal/proof/ensemble/cmd":  {"internal/proof/ensemble"},
	"internal/testkit/exampletest": {"framework", "internal/testkit/testproc", "zktest"},
	"internal/failure":             nil,
	"internal/joblayout":           {"internal/znode"},
	"internal/moduleonly":          {"framework"},
	"internal/lastgood":            {"internal/failure"},
	"internal/linediff":            nil,
	"internal/drain":               {"internal/failure"},
	"internal/proof/faults":        nil, // tests only
	"internal/proof/idle":          nil, // tests only
	"internal/proof/interop":       nil, // its tests use all
	"internal/lifetime":            nil,
	"internal/lockstore":           {"internal/primitives", "internal/waitline"},
	"internal/link":                {"internal/wire"},
	"internal/testkit/logtest":     nil,
	"internal/metrics":             nil,
	"internal/testkit/metricstest": nil,
	"internal/proof/model":         nil, // models and the test that searches them
	"internal/testkit/browser":     nil,
	"internal/testkit/testclock":   {"framework", "internal/clock"},
	"internal/testkit/moduletest":  {"framework", "framework/frameworkfx", "zktest"},
	"internal/proof/modules":       nil,
	"internal/proof/modules/cmd":   {"internal/proof/modules"},
	"internal/proof/manifests":     {"framework"},
	"internal/proof/mutants":       nil,
	"internal/proof/pages":         nil, // tests only
	"internal/onsession":           {"internal/failure"},
	"internal/primitives":          {"internal/lifetime"},
	"internal/reportjson":          {"internal/stored"},
	"internal/sharedreport": {"config", "election", "framework", "internal/moduleonly", "internal/reportjson",
		"members", "registry", "scheduler", "workflow"},
	"internal/procguard":         {"internal/clock"},
	"internal/testkit/progress":  nil,
	"internal/testkit/recording": nil,
	"internal/proof/prometheus":  nil,
	"internal/recipe": {"framework", "internal/backoff", "internal/failure", "internal/onsession",
		"internal/primitives", "internal/stored", "internal/znode"},
	"internal/queuelayout": {"framework", "internal/failure", "internal/primitives", "internal/recipe",
		"internal/znode"},
	"internal/proof/release":    {"internal/proof/modules"},
	"internal/proof/security":   nil, // tests only
	"internal/proof/sim":        nil, // tests only
	"internal/proof/site":       {"internal/testkit/browser"},
	"internal/proof/soak":       {"internal/proof/ensemble"},
	"internal/stored":           nil,
	"internal/testkit/tally":    nil,
	"internal/terminal":         nil,
	"internal/testkit/testproc": nil,
	"internal/zksetting":        {"framework", "internal/zkserver", "zktest"},
	"internal/recipenode":       {"internal/joblayout", "internal/queuelayout", "internal/znode", "locks"},
	"internal/survey": with(forRecipes, "internal/joblayout", "internal/queuelayout", "locks", "scheduler", "queue",
		"workflow", "barrier"),
	"internal/unused": {"framework", "internal/failure", "internal/joblayout", "internal/queuelayout",
		"internal/recipe", "internal/waitline", "internal/znode"},
	"internal/watchdog":   {"internal/wire"},
	"internal/fourletter": {"framework", "internal/primitives"},
	"internal/usercode":   nil,
	"internal/waitgraph":  with(forRecipes, "internal/queuelayout", "internal/waitline"),
	"internal/waitline":   forRecipes,
	"internal/wire":       nil,
	"internal/zkserver":   {"internal/backgroundlog", "internal/wire"},
	"internal/znode":      nil,
}

func with(packages []string, more ...string) []string { return slices.Concat(packages, more) }

// Arrows returns the imports between packages of the module that arrows does not allow.
func Arrows(files []File) (wrong []string) {
	for _, f := range files {
		if f.IsTest() {
			continue
		}
		entry, known := entryOf(f.Dir())
		if !known {
			wrong = append(wrong, fmt.Sprintf("%s: package %s has no entry in arrows", f.Path, f.Dir()))
			continue
		}
		for _, imported := range f.Imports {
			if to, ok := inModule(imported); ok && !mayImport(entry, to) {
				wrong = append(wrong, fmt.Sprintf("%s: %s may not import %s", f.Path, entry, to))
			}
		}
	}
	return wrong
}

// entryOf returns the entry that applies to a directory: its own or the nearest above it. The
// root's entry applies to the root only.
func entryOf(dir string) (entry string, known bool) {
	for d := dir; ; d = path.Dir(d) {
		if _, known := arrows[d]; known && (d != "." || dir == ".") {
			return d, true
		}
		if d == "." {
			return "", false
		}
	}
}

// inModule returns the directory of a package of this module.
func inModule(imported string) (dir string, ok bool) {
	if imported == Module {
		return ".", true
	}
	return strings.CutPrefix(imported, Module+"/")
}

func mayImport(entry, to string) bool {
	target, known := entryOf(to)
	return known && (target == entry || slices.Contains(arrows[entry], target))
}
