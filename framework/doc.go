// Package framework is what every recipe of Lockstep stands on: a client that keeps a ZooKeeper
// session, proves that it lives, and opens a new one when it is lost.
//
// # Guarantee
//
// The context of a [Session], and of each [Hold] on it, is done before any server can give away what
// the session holds, as long as this process is scheduled. The session's lease is proven by writes
// and syncs of the ensemble, not by the answers to pings, which a server that is cut off from its
// leader goes on giving. Fencing tokens catch the late writes of a process that was stopped and
// continues: [Created].Zxid rises with every transaction of the ensemble.
//
// # Failure
//
// A lost connection suspends the session: calls wait, and holds stand until the lease ends. A lapsed
// lease or an expiry ends the session for good, with [ErrSessionLost] as the cause of its context; the
// client opens a new one with the next epoch. Reads are repeated by themselves. A create is protected
// by a UUID in the node's name. After a set, a plain create or a deletion without an answer the client reads the node, and settles the outcome where that can tell;
// otherwise the error wraps [ErrOutcomeUnknown], as that of a transaction without an answer does.
// Every call that waits takes a context and ends with it.
//
// # Not guaranteed
//
// The proof assumes that this machine's clock and the servers' run at the same rate within 2 %, and that
// a leader that stood still sends its next ping before it commits a newer write; see
// docs/guarantees.md. On systems other than Linux the clock may stand still while the machine is
// suspended.
//
// # Nodes
//
// The package itself touches the client's root (a check each T/4 while no node is held) and makes
// missing directories as containers.
package framework
