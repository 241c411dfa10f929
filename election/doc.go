// Package election elects one leader among candidates on ZooKeeper, and tells who is there.
//
// [Election.Lead] is what most services want: campaign, run a function while leading, campaign again.
// [Election.Campaign] and [Term.Resign] are its steps. [Election.Observe] follows the leaders, [Group] is
// a group of processes without a leader.
//
// # Guarantee
//
// A [Term] is a lease (see package locks): its context is done before the servers can let anybody else
// lead, as long as the leader's process is scheduled. Candidates lead in the order in which they asked,
// but for those that a transfer or a priority passes over, who queue again: [Term.Token] and [Term.Number]
// rise with every term. Nobody is told that it leads before its term is counted in a transaction that its own
// node guards. [Election.Lead] never runs its function in two members at once, under the same condition,
// and waits for it to return before it gives the term up. [Election.Observe] reports leaders in order, never
// one that it has already seen replaced, and ends at the latest. A leader's end wakes the next candidate
// and the observers, nobody else; a candidate that waits asks the servers nothing.
//
// # Not guaranteed
//
// A process that was stopped may act after its term has ended, before it looks at the context: pass
// [Term.Token] to what the leader writes to, or [Term.Guard] within ZooKeeper. A function that ignores
// its context goes on while somebody else leads. An observer may miss a term that was over before it
// looked, which a gap in [Candidate.Number] shows, and what it reports may have changed by the time it is
// read. Priorities are heeded by leaders of this package only.
//
// # Nodes
//
//	<path>                          container, removed by the server when empty
//	<path>/_c_<uuid>-latch-#        ephemeral sequential, one for each candidate; data is its id
//	<path>~term                     persistent; data is JSON {"v":1,"number","token","node","id","since","metadata"}
//	<path>~waiting                  container
//	<path>~waiting/_c_<uuid>-p<n>   ephemeral, of a waiting candidate with metadata or the priority n; data is
//	                                JSON {"v":1,"id","metadata","stable_ms"}
//
// The line is that of Apache Curator's LeaderLatch: Go and Java candidates can share an election. With
// [WithSelectorLayout] it is LeaderSelector's, lock-# instead of latch-#. The two must not share a path, and whoever
// meets the other is refused. The rest lies beside the line, since Curator takes all children for
// candidates, and Java's take no notice of it: their terms have no number.
//
// # Failure
//
// While the connection is suspended, candidates keep their places and a term stands until the session's
// proof of life ends, or ends at once with [AtSuspended]. When the session is lost, the term ends with
// framework.ErrSessionLost as its cause; candidates queue again, and observers and members go on, on the next
// session. When a reply is lost, what was asked for is looked up. When a campaign's context ends, its node is
// deleted, if need be in the background.
package election
