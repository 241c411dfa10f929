// Package procguard runs a command for as long as a hold lasts.
//
// # Guarantee
//
// The command's process group ends before the lease of the hold's session, as long as this process is scheduled. It gets SIGTERM
// early enough that SIGKILL, KillAfter later, still comes in time. If the lease has ended already, it gets SIGKILL at once. On Linux
// the command dies with this process, even by SIGKILL; a Guard then ends the whole group, and also when this process is stopped.
//
// # Not guaranteed
//
// Processes that the command leaves behind when it ends by itself keep running, as in a shell. So do processes that leave the
// group (setsid, daemons) and, without a Guard, the command's own children when SIGKILL ends this process. Outside Unix there are no
// groups: this package kills the command alone, without a signal before.
package procguard
