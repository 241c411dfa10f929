// Package conformance holds what a ZooKeeper server must do for Lockstep to be
// right on it, as one suite for any server: the in-memory one of this module and
// a real Apache ZooKeeper ensemble.
//
// [Run] drives the server as a client sees it through go-zookeeper, and by the bare
// wire protocol where that client cannot: requests it does not know, the order of
// replies and events, zxids in headers, sessions that move. On a target with
// several servers, sessions are spread over them.
//
// [Transcript] holds one long raw conversation with a server of its own and writes down
// every answer, made comparable: two servers are alike when their transcripts are
// equal line by line.
package conformance
