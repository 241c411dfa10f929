// Package conformance tests the behaviour of a ZooKeeper server that Lockstep relies on.
// The suite runs on any server: this module's in-memory one, and a real Apache ZooKeeper
// ensemble.
//
// [Run] uses the server through go-zookeeper, and through the bare wire protocol where that client
// is not enough: for requests that it does not know, the order of replies and events, zxids in
// headers, and sessions that move. If the target has several servers, the sessions are spread over
// them. To add a behaviour, add a function to one of the lists of behaviours, such as wireZxid.
//
// [Transcript] holds one long raw conversation with a server of its own, and returns every answer
// as text that can be compared: two servers behave alike if their transcripts are equal line by
// line. To add to the conversation, add a topic to usualTopics or to a setting, and record the real
// server's answers again (see package apache).
package conformance
