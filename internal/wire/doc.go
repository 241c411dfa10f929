// Package wire is the vocabulary of the ZooKeeper client protocol: the jute
// encoding, the operation, error and event codes, the records that travel in
// requests and replies, and the rules for paths.
//
// A frame is a length of four bytes, big endian, and that many bytes after it.
// Reading is safe on bytes from anywhere: a Decoder never panics, and neither
// it nor ReadFrame allocates more than a small multiple of the bytes that have
// really arrived, whatever length the bytes announce.
//
// The package imports nothing but the standard library, since the client's
// connection wrapper and the in-memory server both stand on it.
package wire
