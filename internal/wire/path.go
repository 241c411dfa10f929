package wire

import (
	"errors"
	"fmt"
	"strings"
)

// ErrPath is returned when a path is not one that a ZooKeeper server accepts.
var ErrPath = errors.New("wire: invalid path")

// ValidatePath applies the server's rules: a path begins with a slash, does not
// end with one, has no empty, "." or ".." element, and holds no control
// character (U+0000 to U+001F, U+007F to U+009F), no surrogate or private-use
// character (U+D800 to U+F8FF) and no character from U+FFF0 on. It returns
// ErrPath with the path and the reason.
func ValidatePath(path string) error {
	if path == "" || path[0] != '/' {
		return fmt.Errorf("%w %q: it must begin with a slash", ErrPath, path)
	}
	if path == "/" {
		return nil
	}
	for rest, more := path[1:], true; more; {
		var element string
		element, rest, more = strings.Cut(rest, "/")
		switch element {
		case "":
			return fmt.Errorf("%w %q: empty element", ErrPath, path)
		case ".", "..":
			return fmt.Errorf("%w %q: relative element %q", ErrPath, path, element)
		}
	}
	for at, r := range path {
		if isForbidden(r) {
			return fmt.Errorf("%w %q: character %U at %d", ErrPath, path, r, at)
		}
	}
	return nil
}

// isForbidden reports whether the server refuses a character in a path. The
// server uses UTF-16, in which a character beyond the basic plane is a pair of
// surrogates. An invalid byte is U+FFFD here.
func isForbidden(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}

// SplitPath splits a path at its last slash, as the server does: "/a/b" becomes
// "/a" and "b", "/a" becomes "/" and "a". It does not validate the path. The
// parent of a path without a slash is "".
func SplitPath(path string) (parent, name string) {
	switch i := strings.LastIndexByte(path, '/'); i {
	case -1:
		return "", path
	case 0:
		return "/", path[1:]
	default:
		return path[:i], path[i+1:]
	}
}

// JoinPath returns the path of a child.
func JoinPath(parent, name string) string {
	if parent == "/" {
		return "/" + name
	}
	return parent + "/" + name
}
