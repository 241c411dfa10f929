// Package members tells which processes of a group are there, what each tells of itself, and which of them an operator takes out of service.
//
// A process joins with [Group.Join] and keeps what it tells of itself up to date with [Membership.Update]. [Group.Watch] shows joins, leaves and changes.
// [Group.Cordon] asks a member to take no new work, and [Group.Drain] also to finish what it has and to acknowledge that.
//
// # Guarantee
//
// A member is listed until it leaves or its session ends. On its next session it joins again by itself, with what it told last.
//
// [Group.Watch] tells joins, leaves and changes in the order in which the servers made them, across all members, sessions and servers: none is older than one that was told before. A member that
// left and came back since the last look is told as [Rejoined]. A slow reader gets the latest state of each member: several changes of one member are one, and it does not learn of members
// that joined and left in between.
//
// A cordon belongs to a member's ID. It stands until [Group.Uncordon] removes it: it outlives the member's session and process, and a member that starts under
// one knows of it when Join returns. [Group.Drain] returns nil only after the member's drain function ended without an error, under the request
// that stands. Each process with the ID must have acknowledged.
//
// # Not guaranteed
//
// That a listed member still runs: a crashed process is listed for a session timeout. That a member obeys a cordon: it is asked. That a program sees every state of a member. A list of members
// excludes no process from anything, so sessions stay dormant.
//
// # Nodes
//
//	<path>                      container; written without a change when a member or a cordon is changed, which tells watchers to read
//	<path>/_c_<uuid>-member     ephemeral, one for each membership; JSON {"v":1,"id","metadata","version","load"}
//	<path>/_cordon_<id>         persistent: what an operator asks of a member, and its answers; JSON
//
// Other children, such as those of Apache Curator's GroupMember, are shown as members with their names. When another program changes data, watchers see it with the
// next change of the group.
//
// # Failure
//
// Calls wait until transient errors, such as a lost connection, have passed. New creates no nodes; a wrong argument makes every call fail with an error that says so.
package members
