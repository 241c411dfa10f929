// Package interop runs Lockstep's locks beside those of Apache Curator (Java) and kazoo (Python) on real
// servers: the same line, contenders of several libraries.
//
// Each library is one child process, a [Peer]: Locks.java and peer.py. What the Java programs share is in Peer.java. A peer reads commands from its
// standard input and writes answers to its standard output, one JSON object a line each. Every command is
// executed on its own and answered with its id when it has ended, so several acquisitions can wait at once. An
// answer has either the results or "error", a stack trace. A peer's standard error is
// kept and shown with errors. A peer ends when its standard input ends.
//
//	open          client, servers, timeout (ms)     answers session, password
//	close         client
//	new           lock, client, kind, paths, …      makes a lock object; its acquisitions have a thread of their own
//	acquire       lock, part, wait (ms)             answers granted; without wait for as long as it takes, with 0 a try
//	release       lock, part
//	participants  lock, part                        Curator tells nodes, kazoo what is written into them
//	revocable     lock                              makes the lock revocable, before it is acquired (Curator)
//	revoked       lock                              is answered once somebody has asked for the lock back
//	revoke        client, node                      asks for a lock back (Curator)
//	work          lock, part, client, section, …    enters a critical section, rounds times; see [Section]
//
// Kinds of Curator: mutex, multi (several paths), read-write (parts read and write), semaphore (permits, take),
// semaphore-mutex, latch, selector (a candidate for leadership, called as the lock is). Kinds of kazoo: lock,
// read, write (patterns: extra_lock_patterns), semaphore (permits), and curator-lock, curator-read, curator-write:
// kazoo's locks with Curator's names.
//
// Barriers.java takes open, close, new (kinds gate, and double with permits members), raise, lower and wait of a
// gate, enter and leave of a double barrier; the last three take wait (ms), and answer granted. Queue.java takes
// open, and of the queue at a node: put with the items in nodes, take with their number in rounds, and peek; the
// items that were taken are the answer's participants. Counters.java takes open, and of the node of a DistributedAtomicLong: read, and add with
// the number of increments in rounds; of that of a SharedCount: share, which reads it and adds rounds. The participants are the numbers.
//
// Config.java takes open, and of a value's node: set (to part) and get by a SharedValue, watch, which starts a NodeCache, and await, until that has part, for wait ms. kazoo's
// set-value, get-value, watch-value and await-value of a client do the same with plain reads and writes and a DataWatch, and its count adds 1 to a Counter at node, rounds times. The participants
// are the value, or the numbers.
//
// Discovery.java uses x-discovery: open (part is the base), and of the service at node: register, change and unregister the instance lock (part is its kind), names, list, one, watch
// (starts a ServiceCache and a ServiceProvider), await (until the cache has the lines of nodes, for wait ms) and provide (which instances the provider gives in rounds turns).
// The participants are lines, one for each instance.
package interop
