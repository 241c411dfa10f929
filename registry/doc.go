// Package registry lists the instances of a service, and picks one for each call. Its nodes are
// those of Apache Curator's x-discovery, so Java programs can register and find the same instances.
//
// # Guarantee
//
// A registered instance is registered again, with its latest data, after its session was lost or
// its node was deleted. A [Pool] keeps its last list while the servers cannot be reached. It lists
// no instance only after a read that finds none, on a connection that has synced.
//
// # Not guaranteed
//
// That a listed instance still runs: a crashed one stays listed for a session timeout. A pool stops
// picking it after some failed calls. That two pools see a change at the same time. A registration
// grants no exclusive right, so sessions stay dormant.
//
// # Nodes
//
//	<base>/<service>        container; each change of an instance writes it with empty data in the same transaction, so that pools read the instances again
//	<base>/<service>/<id>   ephemeral: the instance, as Curator's JSON
//
// # Failure
//
// Calls wait until transient errors, such as a lost connection, have passed. Lists leave out a node
// whose data is not an instance's JSON or has an invalid address. A pool also logs it.
package registry
