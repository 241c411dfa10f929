package ensemble

import (
	"bytes"
	"encoding/binary"
	"io"
)

// A server that dials a peer's election port begins with a greeting: the protocol's version (a
// negative number), its id, and the address of its own election port. If the peer's id is the
// larger one, the peer closes the connection and dials that address instead of the one in its
// configuration. So the proxies must change the address: otherwise the peers would bypass the
// links, and an isolated server could still take part in elections.

const (
	greetingHead   = 8 + 8 + 4 // version, id, length of the address
	longestAddress = 2048      // servers refuse longer ones
)

// rewriteGreeting returns a filter of a server's bytes to a peer's election port. It replaces the
// address in the greeting.
func rewriteGreeting(address string) func(io.Reader) io.Reader {
	return func(from io.Reader) io.Reader { return &greetingRewriter{from: from, address: address} }
}

// greetingRewriter rewrites the greeting at the first call of Read.
type greetingRewriter struct {
	from    io.Reader
	address string
	all     io.Reader // the greeting and what follows it
}

func (g *greetingRewriter) Read(p []byte) (int, error) {
	if g.all == nil {
		g.all = io.MultiReader(bytes.NewReader(readAndRewrite(g.from, g.address)), g.from)
	}
	return g.all.Read(p)
}

// readAndRewrite reads a greeting and returns it with another address. If it reads anything else,
// it returns the bytes that it has read.
func readAndRewrite(from io.Reader, address string) []byte {
	head := make([]byte, greetingHead)
	n, err := io.ReadFull(from, head[:8])
	if err != nil || int64(binary.BigEndian.Uint64(head)) >= 0 { // the id alone, as in old versions
		return head[:n]
	}
	n, err = io.ReadFull(from, head[8:])
	length := binary.BigEndian.Uint32(head[16:])
	if err != nil || length > longestAddress {
		return head[:8+n]
	}
	own := make([]byte, length)
	if n, err = io.ReadFull(from, own); err != nil {
		return append(head, own[:n]...)
	}
	binary.BigEndian.PutUint32(head[16:], uint32(len(address)))
	return append(head, address...)
}
