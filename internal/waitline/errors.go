package waitline

import (
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/internal/recipe"
)

var (
	// ErrNotAcquired is returned when a try finds another holder or waiter.
	ErrNotAcquired = errors.New("not acquired")
	// ErrDeadlock is returned when holders of locks wait for each other.
	ErrDeadlock = errors.New("deadlock")
	// ErrPlaceLost is returned when another client has deleted a contender's node. It wraps recipe.ErrAgain: the contender has to join again.
	ErrPlaceLost = fmt.Errorf("the waiter's node was deleted: %w", recipe.ErrAgain)
)
