// Package framework has the client that all recipes of Lockstep use. It keeps a ZooKeeper session,
// proves that the session lives, and opens a new one after a session is lost.
//
// # Guarantee
//
// The context of a [Session] on which something is held, and of each hold on it, is done before any
// server can give away what the session holds, as long as this process is scheduled. The session's
// lease is proven by writes and syncs of the ensemble. Answers to pings do not suffice: a server
// that is cut off from its leader still gives them. Fencing tokens let other systems reject the
// late writes of a process that was stopped and continues: [Stat].Czxid rises with every
// transaction of the ensemble.
//
// # Failure
//
// A lost connection suspends the session: calls wait, and holds stand until the lease ends. A
// lapsed lease or an expiry ends the session for good, with [ErrSessionLost] as the cause of its
// context; the client opens a new one with the next epoch. The client repeats reads. The recipes
// protect their creates by a UUID in the node's name. After a set, a plain create or a deletion
// without an answer, the client reads the node. If that does not show the outcome, the error wraps
// [ErrOutcomeUnknown]. The error of a transaction without an answer always does. Every call that
// waits takes a context and ends with the context.
//
// # Not guaranteed
//
// The proof assumes that this machine's clock and the servers' run at the same rate within 2 %, and
// that a leader that stood still sends its next ping before it commits a newer write; see
// docs/guarantees.md. On systems other than Linux the clock may stand still while the machine is
// suspended.
//
// # Nodes
//
// The package itself touches the client's root: while a session is awake and holds no node, each
// heartbeat checks that node. MakeDirs and the recipes make missing directories as containers.
package framework
