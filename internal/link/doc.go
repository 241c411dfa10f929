// Package link watches the network connections of one ZooKeeper session.
//
// A [Transport] hands out connections to a ZooKeeper client library as that library's dialer, and
// reads the frames that go by. From them it knows when the session came up, on which connection,
// with which timeout and password. It carries requests past the library, without waiting for one
// before the next: [Transport.Send] queues them in order, and the reading goroutine hands their
// answers and the watch events over. It also makes the connection cheaper (reads are buffered,
// writes that queue up share one system call) and bounds what a silent server can cost (the
// handshake has a deadline of its own).
//
// A Transport serves one session and no more: once a session is up, a connection that asks
// for another one is refused, so that a library that opens a new session silently after
// an expiry cannot run old calls in it.
package link
