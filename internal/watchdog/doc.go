// Package watchdog ends a dead process's ZooKeeper session, so that what the process held is free some
// milliseconds after a crash instead of a session timeout later.
//
// A [Keeper] in the process to be watched starts a tiny second process of the same executable, whose main
// function is [Main], and tells it through a pipe how to reach the servers, which session is the process's, and
// which commands it runs for that session. Secrets travel through the pipe only, never in arguments or the
// environment.
//
// # Guarantee
//
// The watchdog acts when the pipe ends without a farewell, which the kernel brings about once no thread of the
// process runs any more, and never otherwise: no timer and no network tells it that a process is dead. It kills
// the registered commands, waits until they are gone, and only then closes the session, through any server, for
// as long as the session could last. A command whose session's lease ends is killed also while its process
// lives, which only matters when that is stopped. A session id with a password that does not belong to it closes
// nothing.
//
// # Not guaranteed
//
// A watchdog that is killed is started again, but one killed together with its process (a container, a process
// namespace, a control group, a machine) or stopped leaves the session to its timeout. So does a command that cannot
// be killed, or one that had just been started and was not registered yet. A copy of the pipe in a child that was
// forked and has executed nothing delays the end.
package watchdog
