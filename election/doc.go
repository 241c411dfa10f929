// Package election elects one leader among candidates on ZooKeeper.
//
// # Guarantee
//
// A [Term] is a lease (see package locks): its context is done before the servers can let anybody else
// lead, as long as the leader's process is scheduled. Candidates lead in the order in which they asked.
// [Election.Lead] never runs its function in two members at once, under the same condition, and waits
// for it to return before it gives the term up. [Election.Observe] reports leaders in order, never one
// that it has already seen replaced, and ends at the latest. A leader's end wakes the next candidate and
// the observers, nobody else.
//
// # Not guaranteed
//
// A process that was stopped may act after its term has ended, before it looks at the context: pass
// [Term.Token] to what the leader writes to, or [Term.Guard] within ZooKeeper. A function that ignores
// its context goes on while somebody else leads. An observer may miss a term that was over before it
// looked, and what it reports may have changed by the time it is read.
//
// # Nodes
//
//	<path>                      container, removed by the server when empty
//	<path>/_c_<uuid>-latch-#    ephemeral sequential, one for each candidate; data is its id
//
// This is the layout of Apache Curator's LeaderLatch: Go and Java candidates can share an election.
// Curator's LeaderSelector has another one and must not be given the same path.
//
// # Failure
//
// While the connection is suspended, candidates keep their places and a term stands until the session's
// proof of life ends. When the session is lost, the term ends with framework.ErrSessionLost as its
// cause; candidates queue again, and observers go on, on the next session.
package election
