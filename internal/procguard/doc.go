// Package procguard runs a command for as long as a hold lasts.
//
// # Guarantee
//
// The command's process group ends before the lease of the hold's session, as long as the system
// schedules this process. The group gets SIGTERM so early that SIGKILL, KillAfter later, is still
// in time; up to a second later if the lease becomes shorter meanwhile. The group also has
// KillAfter if a server ends the session before its lease ends and before the group gets SIGTERM,
// or if an operator deletes the hold's node. If the lease has ended already, because this process
// was stopped, the group gets SIGKILL at once. On Linux the command dies with this process, even if
// SIGKILL ends this process. A Guard ends the whole group if this process is dead or stopped.
//
// A command is not started under a hold that has ended.
//
// # Not guaranteed
//
// If the command ends by itself, the processes that it has left behind keep running, as in a shell.
// So do processes that leave the group (setsid, daemons). Without a Guard, the command's own
// children keep running if SIGKILL ends this process. Systems other than Unix have no process
// groups: there this package kills the command alone, and sends no SIGTERM before.
package procguard
