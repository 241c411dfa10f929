// Package child runs a command for as long as a hold lasts.
//
// # Guarantee
//
// The command's process group is gone before the hold's proof of life lapses, as long as this process
// is scheduled: it gets SIGTERM early enough that SIGKILL, KillAfter later, still comes in time. A
// hold that has lapsed already kills at once. On Linux the command dies with this process, even by
// SIGKILL; a Guard ends the whole group then, and also when this process is stopped.
//
// # Not guaranteed
//
// What the command has left running when it ends by itself is left alone, as by a shell. Processes that
// leave the group (setsid, daemons) are on their own, and so are, without a Guard, the command's own
// children when this process is killed by SIGKILL. Outside Unix there are no groups: the command alone
// is killed, without a warning.
package child
