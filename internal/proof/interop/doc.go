// Package interop runs Lockstep's recipes together with those of Apache Curator (Java) and kazoo
// (Python) on real servers: contenders of several libraries are in the same line, and barriers,
// queues, configuration values, counters and registries are shared.
//
// Each other library runs in a child process, a [Peer]: one of the Java programs for Curator, and
// peer.py for kazoo. Peer.java has the common code of the Java programs. A peer reads commands from
// its standard input and writes answers to its standard output, each a line with a JSON object.
// Commands run concurrently, and each answer has the id of its command, so several acquisitions can
// wait at the same time. An answer has either the results or "error", a stack trace. A peer's
// standard error is kept and shown with errors. A peer ends when its standard input ends.
//
//	open          client, servers, timeout (ms)     answers session, password
//	close         client
//	new           lock, client, kind, paths, …      makes a lock object; its acquisitions have a thread of their own
//	acquire       lock, part, wait (ms)             answers granted; without wait for as long as it takes, with 0 a try
//	release       lock, part
//	participants  lock, part                        Curator returns nodes, kazoo the nodes' contents
//	revocable     lock                              makes the lock revocable, before it is acquired (Curator)
//	revoked       lock                              is answered when a revocation of the lock is requested
//	revoke        client, node                      requests the revocation of a lock (Curator)
//	work          lock, part, client, section, …    enters a critical section, rounds times; see [Section]
//
// Kinds of Curator: mutex, multi (several paths), read-write (parts read and write), semaphore
// (permits, take), semaphore-mutex, latch, selector (a candidate for leadership, called as the lock
// is). Kinds of kazoo: lock, read, write (patterns: extra_lock_patterns), and curator-lock,
// curator-read, curator-write: kazoo's locks with Curator's names.
//
// Barriers.java takes open, close, new (kinds gate, and double with permits members), raise, lower
// and wait of a gate, enter and leave of a double barrier; the last three take wait (ms), and
// answer granted. Queue.java takes open, and of the queue at a node: put with the items in nodes,
// take with their number in rounds, and peek; the items that were taken are the answer's
// participants. Counters.java takes open, and of the node of a DistributedAtomicLong: read, and add
// with the number of increments in rounds; of that of a SharedCount: share, which reads it and adds
// rounds. The participants are the numbers.
//
// Config.java takes open, and of a value's node: set (to part) and get by a SharedValue, watch,
// which starts a NodeCache, and await, until that has part, for wait ms. kazoo's set-value,
// get-value, watch-value and await-value of a client do the same with plain reads and writes and a
// DataWatch, and its count adds 1 to a Counter at node, rounds times. The participants are the
// value, or the numbers.
//
// Discovery.java uses x-discovery: open (part is the base), and of the service at node: register,
// change and unregister the instance lock (part is its kind), names, list, one, watch (starts a
// ServiceCache and a ServiceProvider), await (until the cache has the lines of nodes, for wait ms)
// and provide (which instances the provider gives in rounds turns). The participants are lines, one
// for each instance.
package interop
