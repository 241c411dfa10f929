// Package config keeps configuration in ZooKeeper: a value of one type in one node, which programs
// read without cost and follow while it changes.
//
// [Value.Get] is an atomic load. [Value.Run] keeps it current, across lost connections and
// sessions. A program starts without ZooKeeper: from the last good value in a file ([WithFile]), or
// from a default ([WithDefault]).
//
// # Guarantee
//
// After a value of the servers, a Value shows no older one, also when the node was deleted and
// created again. It keeps the last good value when the servers' value cannot be decoded or
// [WithValidate] refuses it: the log and a metric report that, and [Value.Refused] returns why.
//
// [Value.Set] writes the value and its record in the history in one transaction, at most once. When
// the reply is lost, Set finds out whether its value was written. With [WithExpectedVersion] it
// writes only over the version that was read.
//
// # Not guaranteed
//
// That every value is seen: a slow reader skips to the latest. That all programs change at one
// moment. That two nodes change together: put what belongs together into one struct. [Tree] shows
// many nodes as one struct, as all were at one moment. If, between the read and the write of a Set,
// another program deletes the node, creates it and writes it as often as before, Set does not
// notice.
//
// Secrecy. Do not store secrets here: values are in the servers' logs, in the history and in files.
//
// # Nodes
//
//	<path>            persistent: the value's bytes and no others, for zkCli, Curator's NodeCache and SharedValue, and kazoo
//	<path>~past/v-#   persistent sequential: the record of a value, at most 20; JSON
//
// Directories are containers. The nodes have the ACL of the client that creates them, records
// included: let all writers of a value have the same.
//
// # Failure
//
// A missing node has the default value; without [WithDefault] the last good value stays. Calls wait
// until transient errors, such as a lost connection, have passed. A wrong path or option makes
// every call that returns an error fail with one that says so, and [Value.Err] returns it at once.
package config
