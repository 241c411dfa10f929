// Package redislock has the locks of package locks on Redis: [Mutex] and [RWLock]. Their grants are
// of the same type, [locks.Lease], so they work with locks.Do, and in a locks.MultiLock beside
// locks on ZooKeeper.
//
// # For efficiency, not for correctness
//
// These locks save work: on Redis, two clients may hold the same lock, and then the work is done
// twice. Where that does harm, use package locks.
//
//   - Redis answers a write before its replica has it. When the primary fails then, the replica
//     that takes over does not know of the lock, and grants it again. Both holders go on until the
//     first one's lease ends: for the expiry at most ([WithExpiry]).
//   - The fencing token counts grants in Redis. A failover that loses a grant also loses its count,
//     so a later token may be lower than, or the same as, an earlier one.
//   - A server that is restarted without its data, FLUSHALL, or an eviction (maxmemory-policy other
//     than noeviction) deletes locks.
//   - Redis measures the expiry by its wall clock. When that is set forward, locks expire early.
//   - ZooKeeper cannot check a lock on Redis: a transaction with [locks.Lease.Guard] fails with
//     [framework.ErrInvalid].
//
// # What holds
//
// While one primary keeps its data and its clock runs evenly, there are no two holders: the context
// of a lease is done before the key expires, as long as the process is scheduled. It ends when this
// process's clock, which also counts suspension of the machine, reads the time at which the last
// acknowledged renewal was sent, plus the expiry, less a margin of 2 % and 5 ms. A pause of the
// process is noticed when it ends: [locks.Lease.Err] reads the clock.
//
// A lease ends with [locks.ErrReleased], [locks.ErrMaxHold], [ErrExpired] or [ErrLost] as its
// cause. Each third of the expiry it is renewed. A renewal that fails is repeated until the lease
// ends, and [WithOnRenewalError] tells of it.
//
// # Waiting
//
// A release calls the waiter that has waited the longest since its last call, of all processes, or
// the readers. One that finds the lock taken by a newcomer tries once more within 8 ms. In case a
// message is lost, or the called process stands still, a waiter also tries again when the key
// expires, and at a third of the expiry. Grants are in no order, except with [WithArrivalOrder]: a
// newcomer may overtake waiters, which is what a lock that all want at once is fast by.
//
// # Speed
//
// go-redis does not end with a context, so a call asks in another goroutine and ends with its
// context. A call whose context cannot end, such as context.Background, asks in its own goroutine,
// and may last for go-redis' own timeouts if the server does not answer.
//
// # Telemetry
//
// Calls have spans, and waits and holds are measured, as those of package locks are, with
// [WithTracerProvider] and [WithMeterProvider] or OpenTelemetry's global providers.
//
// # Servers
//
// One primary, alone or behind Sentinel (redis.NewFailoverClient), or a cluster
// (redis.NewClusterClient, without ReadOnly), in which each lock is on one primary. A plain client
// of a server of a cluster is refused for the locks of the other servers. A ring (redis.NewRing) is
// refused for all: when a server fails, it gives its locks to another. Redlock, a lock on several
// independent primaries, is not offered; docs/redis.md says why.
//
// # Keys
//
//	<name>             string: the owner of the exclusive lock, a random number; expires
//	{<name>}:token     number of grants; stays
//	{<name>}:readers   sorted set: owners of read locks, by the end of their expiry
//	{<name>}:writer    the owner that waits for the exclusive lock while others read; expires
//	{<name>}:line      sorted set: waiters by arrival, with WithArrivalOrder
//	{<name>}:stays     sorted set: the same by the time until which they count without a sign of life
//	{<name>}:arrivals  number of arrivals
//	{<name>}:waiting   sorted set: owners that wait for a call, by the time of their last attempt; expires
//	{<name>}:called    the owner that was called and has not tried since; expires after 100 ms
//	{<name>}:calls:*   channels, one for each process
//
// The key <name> is that of other locks by SET NX PX on one server, such as redsync's with one
// pool: they and a Mutex exclude each other.
package redislock
