// Package wire has the ZooKeeper client protocol: the jute encoding, the codes
// of operations, errors and events, the records of requests and replies, and
// the rules for paths.
//
// A frame is a length of four bytes, big endian, and a body of that length.
// The package can read untrusted bytes: a Decoder does not panic. A Decoder and
// ReadFrame allocate at most a small multiple of the bytes that have arrived,
// even if the bytes announce a larger length.
//
// The package imports only the standard library, since internal/link,
// internal/watchdog and internal/zkserver all use it.
package wire
