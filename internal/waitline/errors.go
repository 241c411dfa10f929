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
	// ErrPlaceLost is returned when a contender's node is gone: another client or its own client
	// has deleted it. It wraps recipe.ErrAgain: the caller has to join again.
	ErrPlaceLost = fmt.Errorf("the waiter's node was deleted: %w", recipe.ErrAgain)
)
