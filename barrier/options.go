package barrier

import (
	"fmt"
)

// Option changes how a barrier works. Its error is returned by every use.
type Option func(*options) error

type options struct {
	curator bool
}

// WithCuratorLayout gives a double barrier the nodes of Apache Curator's DistributedDoubleBarrier,
// so that Java members can take part:
//
//	<path>/<uuid>   ephemeral, one for each member
//	<path>/ready    persistent: the round has begun
//
// That layout guarantees less: use a fresh path for each round. The number of members is
// a threshold that is not stored, so a different number or one member too many is not noticed. If a
// member's context ends just when the round begins, that member may fail while the others enter. A
// "ready" node that a crash left behind lets the next members in.
func WithCuratorLayout() Option {
	return func(o *options) error {
		o.curator = true
		return nil
	}
}

// maxMembers bounds the nodes that one transaction checks and one list shows.
const maxMembers = 1000

// The bytes that a transaction may have, and those that each node takes in it beside its path.
const (
	transactionBytes = 900 << 10
	nodeBytes        = 128
)

// checkSize returns framework.ErrInvalid for a number that is not from 1 to most.
func checkSize(n, most int) error {
	if n < 1 || n > most {
		return fmt.Errorf("%w: %d, there must be 1 to %d", errSize, n, most)
	}
	return nil
}
