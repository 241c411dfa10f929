// Package watchdog closes the ZooKeeper session of a dead process. So others get the locks of a
// crashed process some milliseconds after the crash, and need not wait for the session timeout.
//
// The watchdog is a second, small process of the same executable, whose main function is [Main]. A
// [Keeper] in the watched process, its parent, starts it. Through a socket the Keeper tells it how
// to reach the servers, which session the parent has, and which commands the parent runs under that
// session. The Keeper sends secrets through this socket only, and puts none into arguments or the
// environment. (The watchdog inherits the parent's environment.) No other process can open the
// socket, and on Linux none without privileges can trace the watchdog.
//
// # Guarantee
//
// The watchdog closes the session only if the socket ends without a closing message. The kernel
// ends the socket when no thread of the parent runs any more. No timer and no network connection
// decides that the parent is dead. The watchdog kills the registered commands, waits until they
// have ended, and only then closes the session. It tries all servers, for as long as the session
// could last. Servers refuse to resume a session with the wrong password.
//
// The watchdog also kills a command when the lease of its session ends while the parent lives. This
// is for a parent that is stopped.
//
// # Not guaranteed
//
// The parent starts a killed watchdog again. But if the watchdog is stopped, or killed together
// with its parent (a container, a process namespace, a control group, a machine), the session lasts
// until its timeout. The same holds if a command cannot be killed, or was started so recently that
// it is not registered yet; the watchdog kills the others. Before Linux 6.9, the rest of a group
// whose leader has ended and was waited for cannot be killed. A forked child that has not executed
// a program yet has a copy of the socket, and so delays the socket's end.
package watchdog
