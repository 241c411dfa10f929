// Package architecture tests the rules of the module's structure: which package may import which,
// which files may import which library, and how long files and functions may be. Its tests also
// compare the pages in docs and the README with the source tree. It reads the source tree only.
//
// To add a package, or an import between two packages, add it to the table in arrows.go, with a
// reason in docs/adr.
package architecture
