// Package watchdog closes the ZooKeeper session of a dead process, so that others get what the process held some
// milliseconds after a crash instead of a session timeout later.
//
// A [Keeper] in the process to be watched starts a tiny second process of the same executable, whose main
// function is [Main], and tells it through a pipe how to reach the servers, which session is the process's, and
// which commands it runs for that session. Secrets travel through the pipe only, never in arguments or the
// environment.
//
// # Guarantee
//
// The watchdog acts only when the pipe ends without a closing message. The kernel ends the pipe once no thread of the
// process runs; neither a timer nor the network decides that a process is dead. The watchdog kills
// the registered commands, waits until they have ended, and only then closes the session. It tries any server, for
// as long as the session could last. It also kills a command at the end of its session's lease while the process
// lives, which matters when the process is stopped. Servers refuse a session id with the wrong password.
//
// # Not guaranteed
//
// The process starts a killed watchdog again. But if the watchdog is stopped, or killed together with its process (a container, a process
// namespace, a control group, a machine), the session lasts until its timeout. So it does if a command cannot
// be killed, or was just started and is not registered yet. A forked child that has not executed a program has a copy of the pipe
// and delays its end.
package watchdog
