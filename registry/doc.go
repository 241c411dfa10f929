// Package registry tells which instances of a service there are, and picks one for each call. Its nodes are those of Apache Curator's x-discovery, so
// that Java programs register and find instances, too.
//
// # Guarantee
//
// An instance that is registered is registered again by itself, with what it had last, when its session was lost or its node deleted. A [Pool] keeps the last list
// while the servers are away, and takes a service for empty only when a read behind a sync says so.
//
// # Not guaranteed
//
// That a listed instance still runs: a crashed one stays for a session timeout. A pool stops calling it after some failures. Two pools may see a change at different times.
// A registration grants no exclusive right, so sessions stay dormant.
//
// # Nodes
//
//	<base>/<service>        container; written without a change when an instance is changed, which tells pools to read
//	<base>/<service>/<id>   ephemeral: the instance, as Curator's JSON
//
// # Failure
//
// Calls wait until transient errors, such as a lost connection, have passed. What is not an instance's JSON, or has an address that cannot be one, is left out and
// logged.
package registry
