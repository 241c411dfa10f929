// Package modules serves the modules of this repository as a proxy would serve them once they are
// released, so that tests and tools can use each one as a user gets it: without the workspace, and
// beside the libraries that its own go.mod names.
package modules

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// Path is the path of the root module.
const Path = "github.com/lockstep-go/lockstep"

// Version is the version under which the modules are served. The go.mod files of the other modules
// require the root module at this version: all are released together.
const Version = "v1.0.0"

// Dirs are the modules' directories below the root of the repository, the root module first.
var Dirs = []string{".", "bench/compare", "examples", "redislock", "registry/registrygrpc"}

// Environ writes a proxy of the modules of a checkout to dir/proxy and returns the environment in
// which the go command uses it, without the workspace, and with a module cache of its own,
// dir/cache: the modules change, but their version stays. Other modules come from the present
// module cache or proxy.
func Environ(checkout, dir string) ([]string, error) {
	files, err := listFiles(checkout)
	if err != nil {
		return nil, err
	}
	proxy := filepath.Join(dir, "proxy")
	for _, module := range Dirs {
		if err := writeModule(checkout, module, files, proxy); err != nil {
			return nil, fmt.Errorf("modules: %s: %w", module, err)
		}
	}
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return nil, fmt.Errorf("modules: go env: %w", err)
	}
	present := strings.Fields(string(out))
	return append(os.Environ(),
		"GOPROXY=file://"+proxy+",file://"+present[0]+"/cache/download,"+present[1],
		"GONOSUMDB="+Path+","+Path+"/*",
		"GOMODCACHE="+filepath.Join(dir, "cache"),
		"GOFLAGS=-mod=mod -modcacherw -buildvcs=false",
		"GOWORK=off",
	), nil
}

// listFiles returns the files of a checkout, with slashes, from its root. It leaves out what is not
// part of a module's release: directories whose names begin with a dot, bin, and docs/programs,
// whose module nobody imports.
func listFiles(checkout string) (files []string, err error) {
	err = fs.WalkDir(os.DirFS(checkout), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." &&
			(strings.HasPrefix(entry.Name(), ".") || name == "bin" || name == "docs/programs"):
			return fs.SkipDir
		case entry.Type().IsRegular():
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// CopyCheckout copies the files of a checkout that are part of a release to a new directory.
func CopyCheckout(checkout, to string) error {
	files, err := listFiles(checkout)
	if err != nil {
		return err
	}
	for _, file := range files {
		from, to := filepath.Join(checkout, file), filepath.Join(to, file)
		info, err := os.Stat(from)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, content, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// writeModule writes what a proxy serves of one version of a module:
// https://go.dev/ref/mod#goproxy-protocol.
func writeModule(checkout, module string, files []string, proxy string) error {
	name := path.Join(Path, module)
	versions := filepath.Join(proxy, filepath.FromSlash(name), "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(checkout, module, "go.mod"))
	if err != nil {
		return err
	}
	archive, err := archiveModule(checkout, module, files, name+"@"+Version)
	if err != nil {
		return err
	}
	for file, content := range map[string][]byte{
		"list":            []byte(Version + "\n"),
		Version + ".info": []byte(`{"Version":"` + Version + `","Time":"2026-01-01T00:00:00Z"}`),
		Version + ".mod":  mod,
		Version + ".zip":  archive,
	} {
		if err := os.WriteFile(filepath.Join(versions, file), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// archiveModule returns a module's files below a prefix, as a zip archive, without the modules
// below it.
func archiveModule(checkout, module string, files []string, prefix string) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, file := range files {
		if moduleOf(file) != module {
			continue
		}
		content, err := os.ReadFile(filepath.Join(checkout, file))
		if err != nil {
			return nil, err
		}
		inside := strings.TrimPrefix(file, module+"/")
		entry, err := archive.Create(prefix + "/" + inside)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// moduleOf returns the directory of the module that a file belongs to.
func moduleOf(file string) string {
	for _, dir := range Dirs {
		if dir != "." && strings.HasPrefix(file, dir+"/") {
			return dir
		}
	}
	return "."
}
