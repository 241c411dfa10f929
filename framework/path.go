package framework

import (
	"fmt"
	"strings"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// ValidatePath returns an error that wraps ErrInvalid unless path is an absolute znode path
// without a trailing slash, empty or dotted elements and control characters. "/" is valid.
func ValidatePath(path string) error {
	if err := wire.ValidatePath(path); err != nil {
		return fmt.Errorf("%w %s", failure.ErrInvalidPath, strings.TrimPrefix(err.Error(), wire.ErrPath.Error()+" "))
	}
	return nil
}

// namespace maps the client's paths to those of the servers. It is the client's root.
type namespace string

func (n namespace) serverPath(path string) string {
	switch {
	case n == "/":
		return path
	case path == "/":
		return string(n)
	}
	return string(n) + path
}

func (n namespace) clientPath(path string) string {
	if n == "/" {
		return path
	}
	if rest := strings.TrimPrefix(path, string(n)); rest != "" {
		return rest
	}
	return "/"
}
