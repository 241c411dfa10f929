package recipe

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// serverDirectory is the directory of the servers' configuration and quotas.
const serverDirectory = "/zookeeper"

// CheckClientAndPath checks the arguments of a recipe's constructor. The error for a wrong path
// wraps framework.ErrInvalid: no recipe can be at the root, or at or below the servers' own
// directory. what names the recipe with its article, such as "a barrier".
func CheckClientAndPath(client *framework.Client, path, what string) error {
	if client == nil {
		return errors.New("the client is nil")
	}
	if err := framework.ValidatePath(path); err != nil {
		return err
	}
	if path == "/" {
		return fmt.Errorf("%w %q: the root cannot be %s", failure.ErrInvalidPath, path, what)
	}
	full := znode.Join(client.Config().Root, strings.TrimPrefix(path, "/"))
	if full == serverDirectory || strings.HasPrefix(full, serverDirectory+"/") {
		return fmt.Errorf("%w %q: nodes below %s belong to the servers; use another path", failure.ErrInvalidPath,
			path, serverDirectory)
	}
	return nil
}

// ApplyOptions applies all options that are not nil, and returns the first error.
func ApplyOptions[O any, F ~func(*O) error](o O, opts []F) (O, error) {
	var first error
	for _, option := range opts {
		if option == nil {
			continue
		}
		if err := option(&o); err != nil && first == nil {
			first = err
		}
	}
	return o, first
}
