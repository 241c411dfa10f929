package architecture

import (
	"fmt"
	"slices"
	"strings"
)

// libraryRule says which files of the public packages may import a library.
type libraryRule struct {
	library string
	may     func(File) bool
	where   string
}

var libraryRules = []libraryRule{
	{"github.com/go-zookeeper/zk", func(f File) bool { return f.Path == "framework/zookeeper.go" },
		"framework/zookeeper.go"},
	{"go.uber.org/fx", func(f File) bool { return strings.HasSuffix(f.Dir(), "fx") }, "the packages of fx modules"},
	{"google.golang.org/grpc", func(f File) bool { return f.Dir() == "registry/registrygrpc" },
		"registry/registrygrpc"},
	{"github.com/redis/go-redis", func(f File) bool { return f.Dir() == "redislock" }, "redislock"},
	{"go.yaml.in/yaml", func(f File) bool { return f.Dir() == "framework/configfile" }, "framework/configfile"},
	{"modernc.org/sqlite", func(File) bool { return false }, "examples"},
	{"go.opentelemetry.io/otel/sdk", func(File) bool { return false }, "tests, examples and commands"},
	{"go.opentelemetry.io", func(f File) bool { return f.Base() == "telemetry.go" }, "files named telemetry.go"},
}

// Libraries returns the imports of other modules, and of package testing, that no rule allows.
func Libraries(files []File) (wrong []string) {
	for _, f := range files {
		if f.IsTest() {
			continue
		}
		for _, imported := range f.Imports {
			if imported == "testing" && !isSuite(f) {
				wrong = append(wrong, fmt.Sprintf("%s: package testing belongs in tests", f.Path))
			}
			if k, bad := misplaced(f, imported); bad {
				wrong = append(wrong, fmt.Sprintf("%s: only %s may import %s", f.Path, k.where, k.library))
			}
		}
	}
	return wrong
}

// isSuite reports whether a file's package has tests, or helpers of tests, of several packages.
func isSuite(f File) bool {
	entry, _ := entryOf(f.Dir())
	return entry == "internal/proof/conformance" || strings.HasPrefix(entry, "internal/testkit/")
}

func misplaced(f File, imported string) (libraryRule, bool) {
	entry, _ := entryOf(f.Dir())
	if entry != "." && !slices.Contains(public, entry) && !slices.Contains(modules, entry) {
		return libraryRule{}, false
	}
	for _, k := range libraryRules {
		if within(imported, k.library) {
			return k, !k.may(f)
		}
	}
	return libraryRule{}, false
}

// within reports whether a package is the library or is below it.
func within(imported, library string) bool {
	return imported == library || strings.HasPrefix(imported, library+"/")
}
