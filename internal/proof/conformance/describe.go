package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// describe returns the body of an answer as text.
func (s *transcript) describe(op wire.Op, code wire.Code, d *wire.Decoder) string {
	if code != wire.OK {
		return ""
	}
	switch op {
	case wire.OpCreate, wire.OpSync:
		return d.String()
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return d.String() + " " + s.stat(d)
	case wire.OpExists, wire.OpSetData, wire.OpSetACL:
		return s.stat(d)
	case wire.OpGetData:
		return data(d) + " " + s.stat(d)
	case wire.OpGetChildren, wire.OpGetEphemerals:
		return sorted(d)
	case wire.OpGetChildren2:
		return sorted(d) + " " + s.stat(d)
	case wire.OpGetACL:
		return fmt.Sprint(d.ACLs(), " ", s.stat(d))
	case wire.OpGetAllChildrenNumber, wire.OpAddWatch:
		return fmt.Sprint(d.Int())
	case wire.OpMulti, wire.OpMultiRead:
		return s.results(d)
	case wire.OpWhoAmI:
		return identities(d)
	}
	return ""
}

// zxid describes a zxid by its distance from the first session's.
func (s *transcript) zxid(z int64) string {
	if z <= 0 {
		return fmt.Sprint(z)
	}
	if s.hidesZxids {
		return "+?"
	}
	return fmt.Sprintf("%+d", z-s.base)
}

// owner returns the name of a session of the conversation, or the value itself if it is not such a
// session.
func (s *transcript) owner(id int64) string {
	if name, ok := s.names[id]; ok {
		return name
	}
	return fmt.Sprint(id)
}

func (s *transcript) stat(d *wire.Decoder) string {
	var st wire.Stat
	st.Decode(d)
	if d.Err() != nil {
		return "NO STAT"
	}
	return fmt.Sprintf("{c%s m%s p%s version %d cversion %d aversion %d owner %s length %d children %d times %v}",
		s.zxid(st.Czxid), s.zxid(st.Mzxid), s.zxid(st.Pzxid), st.Version, st.Cversion, st.Aversion,
		s.owner(st.EphemeralOwner), st.DataLength, st.NumChildren, st.Ctime > 0 && st.Ctime <= st.Mtime)
}

func data(d *wire.Decoder) string {
	b := d.Buffer()
	switch {
	case b == nil:
		return "null"
	case len(b) > 100:
		return fmt.Sprintf("%d bytes", len(b))
	}
	return fmt.Sprintf("%q", b)
}

func sorted(d *wire.Decoder) string {
	names := d.Strings()
	slices.Sort(names)
	return fmt.Sprintf("%q", names)
}

// identities describes whoAmI's answer. It sorts the identities, because the server takes them from
// a set.
func identities(d *wire.Decoder) string {
	var all []string
	for range d.Int() {
		all = append(all, d.String()+" "+d.String())
	}
	slices.Sort(all)
	return fmt.Sprintf("%q", all)
}

// results describes a multi's answer, as far as it can be read.
func (s *transcript) results(d *wire.Decoder) string {
	var b strings.Builder
	for d.Err() == nil {
		var h wire.MultiHeader
		h.Decode(d)
		fmt.Fprintf(&b, "[%v %v %d", h.Op, h.Done, h.Err)
		if h.Done {
			break
		}
		b.WriteString(s.result(h.Op, d) + "]")
	}
	return b.String() + "]"
}

func (s *transcript) result(op wire.Op, d *wire.Decoder) string {
	switch op {
	case wire.OpError:
		return fmt.Sprint(" ", wire.Code(d.Int()))
	case wire.OpDelete, wire.OpCheck:
		return ""
	}
	return " " + s.describe(op, wire.OK, d)
}

// leavesResults reports whether an answer is one in which Apache sends a part of the results after
// an error. No client reads that part, so it is not compared.
func leavesResults(op wire.Op, code wire.Code) bool {
	return code != wire.OK && (op == wire.OpMulti || op == wire.OpMultiRead)
}

// end describes how a connection ended. It distinguishes a server that does not answer from one
// that closes the connection.
func end(err error) string {
	if errors.Is(err, errTimeout) {
		return "NO ANSWER"
	}
	return "closed"
}

// rest describes the bytes of an answer after the expected ones.
func rest(d *wire.Decoder) string {
	if d.Err() != nil {
		return " SHORT"
	}
	if d.Len() > 0 {
		return fmt.Sprintf(" REST %x", d.Rest())
	}
	return ""
}
