// Package election elects one leader among candidates on ZooKeeper.
//
// Most services use [Election.Lead]: it campaigns, runs a function while this process leads, and
// campaigns again. [Election.Campaign] and [Term.Resign] are its steps. [Election.Follow] follows
// the leaders.
//
// # Guarantee
//
// A [Term] is a lease on leadership: its context is done before the servers can let another
// candidate lead, as long as the leader's process is scheduled. Candidates lead in the order of
// joining, except for those that a transfer or a priority passes over, which join again:
// [Term.Token] and [Term.Number] rise with every term. A candidate learns that it leads after its
// term is recorded, in a transaction that its own node guards. Under the same condition,
// [Election.Lead] runs its function in one member at a time. It waits for the function to return
// before it gives the term up. [Election.Follow] reports leaders in order, skips those that it has
// seen replaced, and ends at the latest. A leader's end wakes only the next candidate and the
// observers. A waiting candidate sends no requests; the next in line sends heartbeats.
//
// # Not guaranteed
//
// A paused process may act after its term has ended, before it checks the context: pass
// [Term.Token] to what the leader writes to, or [Term.Guard] within ZooKeeper. A function that
// ignores its context goes on while another candidate leads. An observer may miss a short term,
// which a gap in [Candidate.Number] shows, and a leader may have changed by the time the report is
// read. Only leaders of this package heed priorities.
//
// # Nodes
//
//	<path>                          container, removed by the server when empty
//	<path>/_c_<uuid>-latch-#        ephemeral sequential, one for each candidate; data is its id
//	<path>~term                     persistent; data is JSON {"v":1,"number","token","node","id","since","metadata","trace"}
//	<path>~waiting                  container
//	<path>~waiting/_c_<uuid>-p<n>   ephemeral, of a waiting candidate with metadata or the priority n; data is
//	                                JSON {"v":1,"id","metadata","stable_ms"}
//	<path>~waiting/_c_<uuid>-transfer  ephemeral, of a program that asks for a transfer; data is JSON {"v":1,"id"}
//
// The line is that of Apache Curator's LeaderLatch: Go and Java candidates can share an election.
// With [WithSelectorLayout] it is LeaderSelector's, lock-# instead of latch-#. The two must not
// share a path: a candidate that finds the other layout fails. The other nodes are beside the line,
// since Curator takes all children for candidates. Java candidates ignore them: their terms have no
// number.
//
// # Failure
//
// While the connection is suspended, candidates keep their places and a term stands until the
// session's proof of life ends, or ends at once with [AtSuspended]. When the session is lost, the
// term ends with framework.ErrSessionLost as its cause. Candidates join again, and observers go on,
// on the next session. When a reply is lost, the client looks up the outcome. When a campaign's
// context ends, its node is deleted, if need be in the background.
//
// While the servers refuse a waiting candidate's node below <path>~waiting, as a quota may, the
// candidate waits without it and tries again after pauses. Readers skip nodes there that they may
// not or cannot read, and log that once for each node.
//
// New creates no nodes and returns no error: a wrong argument makes every call fail with an error
// that says so.
package election
