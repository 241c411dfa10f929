package zktest

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/zkserver"
)

var (
	errOption = failure.KindOf(failure.ErrInvalid, "zktest: invalid option")
	errClosed = errors.New("zktest: server is closed")

	// What a real network returns, so that programs need not tell this one from it.
	errRefused = fmt.Errorf("zktest: %w", syscall.ECONNREFUSED)
	errReset   = fmt.Errorf("zktest: %w", syscall.ECONNRESET)
)

// ErrSessionTooLarge is returned by Server.Err after a session ended that had too many ephemeral
// nodes: the servers of an ensemble could not have closed it.
var ErrSessionTooLarge = zkserver.ErrSessionTooLarge
