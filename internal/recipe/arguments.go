package recipe

import (
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
)

// CheckClientAndPath reports why a recipe cannot be at path on this client, or nil. what is the recipe with its article, such as "a barrier".
func CheckClientAndPath(client *framework.Client, path, what string) error {
	if client == nil {
		return errors.New("the client is nil")
	}
	if err := framework.ValidatePath(path); err != nil {
		return err
	}
	if path == "/" {
		return fmt.Errorf("%w %q: the root cannot be %s", framework.ErrInvalidPath, path, what)
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
