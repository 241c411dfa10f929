package zkserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// raw is a client that speaks the bare protocol and writes down what it hears,
// without what differs from run to run.
type raw struct {
	st   *stage
	name string
	nc   net.Conn

	session  int64
	password []byte
	zxid     int64 // the last one heard
	xid      int32
	ops      map[int32]wire.Op
}

func (r *raw) say(format string, args ...any) {
	r.st.lines = append(r.st.lines, r.name+": "+fmt.Sprintf(format, args...))
}

// open connects; zero session asks for a new one.
func (r *raw) open(ask wire.ConnectRequest) bool {
	r.dial()
	var e wire.Encoder
	mark := e.BeginFrame()
	ask.Encode(&e)
	e.EndFrame(mark)
	r.write(e.Bytes())
	frame, err := r.frame()
	if err != nil {
		r.say("connect: closed")
		return false
	}
	var reply wire.ConnectResponse
	d := wire.NewDecoder(frame)
	reply.Decode(&d)
	require.NoError(r.st.t, d.Err())
	r.session, r.password = reply.Session, slices.Clone(reply.Password)
	if r.session != 0 {
		r.st.names[r.session] = r.name
	}
	r.say("connect: protocol %d timeout %d session %s password %d zero %v short %v readOnly %v rest %d", reply.Protocol, reply.Timeout,
		r.st.owner(r.session), len(r.password), isZero(r.password), reply.Short, reply.ReadOnly, d.Len())
	return r.session != 0
}

func isZero(b []byte) bool { return strings.Trim(string(b), "\x00") == "" }

func (r *raw) dial() {
	r.nc = r.st.dial()
	r.ops = map[int32]wire.Op{}
	r.st.opened = append(r.st.opened, r.nc)
}

func (r *raw) write(b []byte) {
	_ = r.nc.SetWriteDeadline(time.Now().Add(3 * time.Second))
	_, _ = r.nc.Write(b) // the server may have closed: the next read tells
}

func (r *raw) frame() ([]byte, error) {
	_ = r.nc.SetReadDeadline(time.Now().Add(r.st.patience))
	return wire.ReadFrame(r.nc, nil, 64<<20)
}

// send writes a request and does not wait.
func (r *raw) send(op wire.Op, body wire.Request) {
	var e wire.Encoder
	body.Encode(&e)
	r.sendBytes(op, e.Bytes())
}

func (r *raw) sendBytes(op wire.Op, body []byte) {
	r.xid++
	xid := r.xid
	if op == wire.OpPing {
		xid = wire.XidPing
	}
	r.ops[xid] = op
	var e wire.Encoder
	mark := e.BeginFrame()
	wire.RequestHeader{Xid: xid, Op: op}.Encode(&e)
	e.Raw(body)
	e.EndFrame(mark)
	r.write(e.Bytes())
}

// do sends a request and writes down all that comes up to its answer.
func (r *raw) do(op wire.Op, body wire.Request) {
	r.send(op, body)
	for r.hear() {
	}
}

func (r *raw) doBytes(op wire.Op, body []byte) {
	r.sendBytes(op, body)
	for r.hear() {
	}
}

// drain writes down the events that have come.
func (r *raw) drain() { r.do(wire.OpPing, &wire.EmptyRequest{}) }

// quit closes the session.
func (r *raw) quit() { r.do(wire.OpCloseSession, &wire.EmptyRequest{}) }

// hear writes down one packet; true when it was an event.
func (r *raw) hear() bool {
	frame, err := r.frame()
	if err != nil {
		r.say("%s", silence(err))
		return false
	}
	d := wire.NewDecoder(frame)
	var head wire.ReplyHeader
	head.Decode(&d)
	if head.Xid == wire.XidNotify {
		var w wire.WatchEvent
		w.Decode(&d)
		r.say("  event zxid %d %v state %d %s", head.Zxid, w.Type, w.State, w.Path)
		return true
	}
	op := r.ops[head.Xid]
	r.zxid = head.Zxid
	text := ""
	if head.Err == wire.OK {
		text = " " + r.answer(op, &d)
	}
	require.NoError(r.st.t, d.Err(), "%v", op)
	if d.Len() > 0 && head.Err == wire.OK { // nobody reads on behind an error
		text += fmt.Sprintf(" REST %x", d.Rest())
	}
	r.say("%v zxid %s %v%s", op, r.st.relative(head.Zxid), head.Err, text)
	return false
}

func silence(err error) string {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "no answer"
	}
	return "closed"
}

// answer prints an answer's body.
func (r *raw) answer(op wire.Op, d *wire.Decoder) string {
	switch op {
	case wire.OpCreate, wire.OpSync:
		return d.String()
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return d.String() + " " + r.stat(d)
	case wire.OpExists, wire.OpSetData, wire.OpSetACL:
		return r.stat(d)
	case wire.OpGetData:
		return r.data(d)
	case wire.OpGetChildren, wire.OpGetEphemerals:
		return children(d)
	case wire.OpGetChildren2:
		return children(d) + " " + r.stat(d)
	case wire.OpGetACL:
		acl := d.ACLs() // expanded in hash order
		slices.SortFunc(acl, func(a, b wire.ACL) int { return strings.Compare(a.Scheme+a.ID, b.Scheme+b.ID) })
		return fmt.Sprint(acl) + " " + r.stat(d)
	case wire.OpGetAllChildrenNumber, wire.OpAddWatch:
		return fmt.Sprint(d.Int())
	case wire.OpMulti, wire.OpMultiRead:
		return r.multi(d)
	case wire.OpWhoAmI:
		return identities(d)
	}
	return ""
}

func (r *raw) data(d *wire.Decoder) string {
	b := d.Buffer()
	if b == nil {
		return "null " + r.stat(d)
	}
	return fmt.Sprintf("%q %s", b, r.stat(d))
}

func children(d *wire.Decoder) string {
	names := d.Strings()
	slices.Sort(names)
	return fmt.Sprint(names)
}

func identities(d *wire.Decoder) string {
	var out []string
	for range d.Int() {
		out = append(out, d.String()+":"+d.String())
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}

func (r *raw) stat(d *wire.Decoder) string {
	var s wire.Stat
	s.Decode(d)
	return fmt.Sprintf("{c%s m%s p%s version %d children %d acl %d owner %s data %d nodes %d changed %v}", r.st.relative(s.Czxid), r.st.relative(s.Mzxid),
		r.st.relative(s.Pzxid), s.Version, s.Cversion, s.Aversion, r.st.owner(s.EphemeralOwner), s.DataLength, s.NumChildren, s.Mzxid != s.Czxid)
}

func (r *raw) multi(d *wire.Decoder) string {
	var out strings.Builder
	for d.Err() == nil {
		var h wire.MultiHeader
		h.Decode(d)
		fmt.Fprintf(&out, "[%v %v %d", h.Op, h.Done, h.Err)
		if h.Done {
			break
		}
		if h.Op == wire.OpError {
			fmt.Fprintf(&out, " error %d", d.Int())
		} else {
			out.WriteString(" " + r.answer(h.Op, d))
		}
		out.WriteString("]")
	}
	return out.String()
}
