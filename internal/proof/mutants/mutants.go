// Package mutants takes safeguards out of the code, one at a time, so that tests can show that a
// test notices.
//
// A mutant is a textual change of one file. The compiler gets the changed file as an overlay, so
// the code has no switches. Combine puts many mutants into one build, which has a switch. The lists
// are in this package's tests, a file for each package, and in internal/proof/sim, whose mutants
// are noticed by the simulation.
package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Change replaces one text of a file by another.
type Change struct {
	File string // from the module's root
	Old  string // occurs exactly once in the file; where the file has it once with other line breaks, that counts
	New  string
}

// Apply returns the file with the change. It refuses a text that does not occur exactly once: the
// safeguard has moved.
func (c Change) Apply(root string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, c.File))
	if err != nil {
		return nil, err
	}
	from, to, err := c.find(source)
	if err != nil {
		return nil, err
	}
	changed := slices.Concat(source[:from], []byte(c.New), source[to:])
	if bytes.Equal(source, changed) {
		return nil, fmt.Errorf("%s: the change changes nothing:\n%s", c.File, c.Old)
	}
	return changed, nil
}

// find returns where the only occurrence of the old text begins and ends.
func (c Change) find(source []byte) (from, to int, err error) {
	if n := bytes.Count(source, []byte(c.Old)); n == 1 {
		from = bytes.Index(source, []byte(c.Old))
		return from, from + len(c.Old), nil
	} else if n > 1 {
		return 0, 0, fmt.Errorf("%s: the text occurs %d times, not once:\n%s", c.File, n, c.Old)
	}
	anyBreaks := whitespace.ReplaceAllLiteralString(regexp.QuoteMeta(strings.TrimSpace(c.Old)), `\s+`)
	anyBreaks = strings.NewReplacer(`\(`, `\(\s*`, `\{`, `\{\s*`).Replace(anyBreaks)
	found := regexp.MustCompile(anyBreaks).FindAllIndex(source, -1)
	if len(found) != 1 {
		return 0, 0, fmt.Errorf("%s: the text occurs %d times, not once:\n%s", c.File, len(found), c.Old)
	}
	return found[0][0], found[0][1], nil
}

var whitespace = regexp.MustCompile(`\s+`)

// Overlay writes the changed file and a list for "go build -overlay" into dir, and returns the
// list's path.
func (c Change) Overlay(root, dir string) (string, error) {
	changed, err := c.Apply(root)
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(filepath.Join(root, c.File))
	if err != nil {
		return "", err
	}
	return writeOverlay(dir, map[string]string{original: string(changed)})
}

// writeOverlay writes the texts of files, and a list of them for "go build -overlay", whose path it
// returns.
func writeOverlay(dir string, texts map[string]string) (string, error) {
	replace := map[string]string{}
	for i, original := range slices.Sorted(maps.Keys(texts)) {
		replace[original] = filepath.Join(dir, fmt.Sprintf("mutated%d.go", i))
		if err := os.WriteFile(replace[original], []byte(texts[original]), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}
