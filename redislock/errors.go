package redislock

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockstep-go/lockstep/internal/failure"
)

var (
	// ErrExpired is the cause of a lease's end when no renewal was acknowledged in time: the server
	// could not be reached, or the process was paused. It is also returned by a call whose grant
	// was answered after the end of its expiry: choose a longer one than the time of a round trip.
	ErrExpired = errors.New("the lock's expiry is over")
	// ErrLost is the cause of a lease's end when the server answers that the lock is not this
	// lease's any more: after a failover that lost it, or a deletion.
	ErrLost = errors.New("the lock was lost")
)

// explain names the reason of a server's refusal.
func (l *lock) explain(err error) error {
	_, isPlain := l.client.(*redis.Client) // others follow a redirection, and give up after several
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "WRONGTYPE "): // older servers say first which script failed
		return fmt.Errorf("%w: %w", errForeign, err)
	case strings.Contains(err.Error(), "READONLY "):
		return fmt.Errorf("%w: %w", errReplica, err)
	case isPlain && redis.HasErrorPrefix(err, "MOVED"):
		return fmt.Errorf("%w: the server is one of a cluster, connect by redis.NewClusterClient: %w", errInvalid, err)
	}
	return err
}

// transientPrefixes begin the answers of a server that is starting, is being replaced or is busy.
var transientPrefixes = []string{"LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "BUSY",
	"NOREPLICAS", "UNKILLABLE", "max number of clients reached"}

// isTransient reports whether the same request may succeed later: the connection failed, or the
// server is being replaced.
func isTransient(err error) bool {
	switch {
	case errors.Is(err, errReplica):
		return true
	case errors.Is(err, errInvalid):
		return false
	}
	for _, prefix := range transientPrefixes {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, net.ErrClosed)
}

// errReplica says that the server only reads.
var errReplica = errors.New("the server is a replica: connect to the primary, or by Sentinel")

// Kinds of errors of package framework, with texts of their own.
var (
	errNoGuard = failure.KindOf(failure.ErrInvalid, "a lock on Redis has no guard: pass its token to what it protects")
	errForeign = failure.KindOf(failure.ErrForeign, "the key is used by something else")
	errInvalid = failure.KindOf(failure.ErrInvalid, "invalid argument")
)
