package ensemble

import (
	"bytes"
	"encoding/binary"
	"io"
)

// A server that dials a peer's election port begins with a greeting: the protocol's version (a
// negative number), its id, and the address of its own election port. If the peer's id is the larger
// one, the peer hangs up and dials that address instead of the one in its configuration. Passed on as
// it is, the greeting would lead around the links: an isolated server would go on electing.

const (
	greetingHead   = 8 + 8 + 4 // version, id, length of the address
	longestAddress = 2048      // servers refuse longer ones
)

// greetAs returns what a server that calls itself address would send to the election port, of what a
// server sends.
func greetAs(address string) func(io.Reader) io.Reader {
	return func(from io.Reader) io.Reader { return &greetingRewriter{from: from, address: address} }
}

// greetingRewriter reads the greeting when it is first read from.
type greetingRewriter struct {
	from    io.Reader
	address string
	all     io.Reader // the greeting and what follows it
}

func (g *greetingRewriter) Read(p []byte) (int, error) {
	if g.all == nil {
		g.all = io.MultiReader(bytes.NewReader(readGreeting(g.from, g.address)), g.from)
	}
	return g.all.Read(p)
}

// readGreeting returns a greeting with another address. What is no greeting is returned as it is, as
// far as it was read.
func readGreeting(from io.Reader, address string) []byte {
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
