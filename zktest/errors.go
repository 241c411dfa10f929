package zktest

import (
	"errors"

	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/zkserver"
)

var errOption = failure.KindOf(failure.ErrInvalid, "zktest: invalid option")

// ErrClosed is returned by ListenTCP when the server has been closed.
var ErrClosed = errors.New("zktest: server is closed")

// ErrRefused is returned by Dial while the link is cut and when the server is
// closed.
var ErrRefused = errors.New("zktest: connection refused")

// ErrReset is returned by reads and writes on a connection that was reset.
var ErrReset = errors.New("zktest: connection reset by peer")

// ErrSessionTooLarge is returned by Server.Err after a session ended that had too many ephemeral
// nodes: the servers of an ensemble could not have closed it.
var ErrSessionTooLarge = zkserver.ErrSessionTooLarge
