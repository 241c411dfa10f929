package architecture

import (
	"fmt"
	"slices"
	"strings"
)

// keeper says which files of the public packages may import a library.
type keeper struct {
	library string
	may     func(File) bool
	where   string
}

var keepers = []keeper{
	{"github.com/go-zookeeper/zk", func(f File) bool { return f.Path == "framework/zookeeper.go" }, "framework/zookeeper.go"},
	{"go.uber.org/fx", func(f File) bool { return strings.HasSuffix(f.Dir(), "fx") }, "the packages of fx modules"},
	{"google.golang.org/grpc", func(f File) bool { return f.Dir() == "registry/registrygrpc" }, "registry/registrygrpc"},
	{"go.opentelemetry.io/otel/sdk", func(File) bool { return false }, "tests, examples and commands"},
	{"go.opentelemetry.io", func(f File) bool { return f.Base() == "telemetry.go" }, "files named telemetry.go"},
}

// Libraries returns what is wrong with the imports of other modules, and of package testing.
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
				wrong = append(wrong, fmt.Sprintf("%s: %s is imported by %s alone", f.Path, k.library, k.where))
			}
		}
	}
	return wrong
}

// isSuite reports whether a file's package holds tests, or parts of them, for several packages.
func isSuite(f File) bool {
	room, _ := roomOf(f.Dir())
	return slices.Contains([]string{"internal/conformance", "internal/metricstest", "internal/testproc"}, room)
}

func misplaced(f File, imported string) (keeper, bool) {
	room, _ := roomOf(f.Dir())
	if !slices.Contains(public, room) && !slices.Contains(modules, room) {
		return keeper{}, false
	}
	for _, k := range keepers {
		if within(imported, k.library) {
			return k, !k.may(f)
		}
	}
	return keeper{}, false
}

// within tells whether a package is the library or lies below it.
func within(imported, library string) bool {
	return imported == library || strings.HasPrefix(imported, library+"/")
}
