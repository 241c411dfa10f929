// Package members lists the processes of a group with their descriptions of themselves, and lets
// operators take single processes out of service.
//
// A process joins with [Group.Join] and describes itself by an [Info], which [Membership.Update]
// changes. [Group.Follow] shows joins, leaves and changes. [Group.Cordon] asks a member to take no
// new work. [Group.Drain] also asks it to finish its work and to acknowledge that.
//
// # Guarantee
//
// A member is listed until it leaves or its session ends. On its next session it joins again by
// itself, with its latest Info.
//
// [Group.Follow] reports joins, leaves and changes in the order in which the servers made them,
// across all members, sessions and servers: no report is older than the one before. It reports a
// member that left and came back between two reads as [Rejoined]. A slow reader gets the latest
// state of each member: several changes of one member are one, and it does not learn of members
// that joined and left in between.
//
// A cordon belongs to a member's ID. It stands until [Group.Uncordon] removes it: it outlives the
// member's session and process. When Join returns, the member knows of a cordon that stood before.
// [Group.Drain] returns nil only after the drain function of each listed process with the ID has
// returned nil for the present request. If no process with the ID is listed any more, the function
// of one must have returned nil before that process left.
//
// # Not guaranteed
//
// That a listed member still runs: a crashed process is listed for a session timeout. That a member
// obeys a cordon: a cordon is a request. That a watcher sees every state of a member. A membership
// grants no exclusive right, so sessions stay dormant.
//
// # Nodes
//
//	<path>                      container; each change of a member or a cordon writes it with empty data in the same transaction, so that watchers read the group again
//	<path>/_c_<uuid>-member     ephemeral, one for each membership; JSON {"v":1,"id","metadata","version","load"}
//	<path>/_cordon_<id>         persistent: an operator's request to a member, and the member's answers; JSON {"v":1,"id","request","drain","reason","by","answers"}
//
// Other children, such as those of Apache Curator's GroupMember, are shown as members with their
// names as IDs. When another program changes data, watchers see it with the next change of the
// group.
//
// # Failure
//
// Calls wait until transient errors, such as a lost connection, have passed. New sends no request;
// if one of its arguments is invalid, every call returns an error that says so.
package members
