package pages

import (
	"bytes"
	"encoding/json"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	fenced = regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```$")
	span   = regexp.MustCompile("`([^`\n]+)`")
	// qualified finds package.Name and package.Type.Member, member finds Type.Member.
	qualified = regexp.MustCompile(`(?:^|[^\w./])([a-z]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	member    = regexp.MustCompile(`(?:^|[^\w./])([A-Z]\w*)\.([A-Z]\w*)`)
	// foreign are members of types of other libraries that have the names of ours.
	foreign = map[string]bool{"Election.Observe": true, "Election.Proclaim": true, "Job.RunNow": true,
		"Mutex.Header": true, "Mutex.IsOwner": true, "Session.Done": true, "Session.Orphan": true}
)

// TestNamesExist looks up each exported name between backticks and in Go code.
func TestNamesExist(t *testing.T) {
	public := publicPackages(t)
	files := presentPages(t)
	count := 0
	check := func(file, code string) {
		for _, name := range qualified.FindAllStringSubmatch(code, -1) {
			if candidates := public[name[1]]; candidates != nil {
				count++
				if !hasName(candidates, name[2], name[3]) {
					t.Errorf("%s: there is no %s", file, strings.TrimSpace(name[0]))
				}
			}
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		for _, code := range fenced.FindAllStringSubmatch(string(text), -1) {
			if code[1] == "go" {
				check(file, code[2])
			}
		}
		for _, code := range span.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			check(file, code[1])
			for _, name := range member.FindAllStringSubmatch(code[1], -1) {
				if foreign[name[1]+"."+name[2]] {
					continue
				}
				var declare []*types.Package // those that have a type of this name
				for _, candidates := range public {
					for _, candidate := range candidates {
						if hasName([]*types.Package{candidate}, name[1], "") {
							declare = append(declare, candidate)
						}
					}
				}
				if declare != nil {
					count++
					if !hasName(declare, name[1], name[2]) {
						t.Errorf("%s: there is no %s.%s", file, name[1], name[2])
					}
				}
			}
		}
	}
	require.Greater(t, count, 300)
}

// TestFilesExist looks for the files of Go code that pages name: by a path, or by a name that a
// file of some package has.
func TestFilesExist(t *testing.T) {
	var paths []string // with a slash before each
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(file) == ".go" {
			name, err := filepath.Rel(root, file)
			paths = append(paths, "/"+filepath.ToSlash(name))
			return err
		}
		return err
	}))
	named := regexp.MustCompile(`[\w./-]*\w\.go\b`)
	count := 0
	for _, file := range presentPages(t) {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		for _, code := range span.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			for _, name := range named.FindAllString(code[1], -1) {
				count++
				if !slices.ContainsFunc(paths, func(path string) bool { return strings.HasSuffix(path, "/"+name) }) {
					t.Errorf("%s: there is no file %s", file, name)
				}
			}
		}
	}
	require.Greater(t, count, 30)
}

// presentPages are README.md and its like, and docs without the decisions, which may name what was
// there when they were made.
func presentPages(t *testing.T) []string {
	t.Helper()
	files := []string{"README.md", "SECURITY.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, file := range found {
			if name, _ := filepath.Rel(root, file); path.Dir(filepath.ToSlash(name)) != "docs/adr" {
				files = append(files, name)
			}
		}
	}
	return files
}

// hasName reports whether one of the packages exports the name, and if member is not empty, whether
// what is named has such a method or field.
func hasName(candidates []*types.Package, name, member string) bool {
	for _, candidate := range candidates {
		object := candidate.Scope().Lookup(name)
		if object == nil {
			continue
		}
		if member == "" {
			return true
		}
		if found, _, _ := types.LookupFieldOrMethod(object.Type(), true, candidate, member); found != nil {
			return true
		}
	}
	return false
}

// publicPackages returns the types of the packages that users import, by the package's name.
func publicPackages(t *testing.T) map[string][]*types.Package {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-json=ImportPath,Export,Name",
		"work")
	command.Dir = root
	out, err := command.Output()
	require.NoError(t, err)
	exports, public := map[string]string{}, []string{}
	for list := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export, Name string }
		if err := list.Decode(&p); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
		exports[p.ImportPath] = p.Export
		isOwn := strings.HasPrefix(p.ImportPath, module)
		if isOwn && p.Name != "main" && !strings.Contains(p.ImportPath, "/internal/") {
			public = append(public, p.ImportPath)
		}
	}
	require.Greater(t, len(public), 20)
	read := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	packages := map[string][]*types.Package{}
	for _, path := range public {
		p, err := read.Import(path)
		require.NoError(t, err)
		packages[p.Name()] = append(packages[p.Name()], p)
	}
	return packages
}
