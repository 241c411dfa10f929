package zktest

import (
	"errors"

	"github.com/lockstep-go/lockstep/internal/zkserver"
)

// ErrOption is returned when an option's value cannot be used.
var ErrOption = errors.New("zktest: invalid option")

// ErrClosed is returned when the server has been closed.
var ErrClosed = errors.New("zktest: server is closed")

// ErrRefused is returned by Dial while the link is cut and when the server is
// closed.
var ErrRefused = errors.New("zktest: connection refused")

// ErrReset is returned by reads and writes on a connection that was reset.
var ErrReset = errors.New("zktest: connection reset by peer")

// ErrSessionTooLarge is returned by Server.Err when a session with so many ephemeral nodes was closed or expired that
// the servers of an ensemble could not have closed it.
var ErrSessionTooLarge = zkserver.ErrSessionTooLarge
