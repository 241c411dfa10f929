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

// rawClient is a client that uses the protocol directly. It logs the frames that it gets,
// without the values that differ between runs.
type rawClient struct {
	st   *testClients
	name string
	nc   net.Conn

	session  int64
	password []byte
	zxid     int64 // the zxid of the latest answer
	xid      int32
	ops      map[int32]wire.Op
}

func (r *rawClient) logLine(format string, args ...any) {
	r.st.lines = append(r.st.lines, r.name+": "+fmt.Sprintf(format, args...))
}

// open connects and sends a connect request. It returns false if it gets no session.
func (r *rawClient) open(ask wire.ConnectRequest) bool {
	r.dial()
	var e wire.Encoder
	mark := e.BeginFrame()
	ask.Encode(&e)
	e.EndFrame(mark)
	r.write(e.Bytes())
	frame, err := r.frame()
	if err != nil {
		r.logLine("connect: closed")
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
	r.logLine("connect: protocol %d timeout %d session %s password %d zero %v short %v readOnly %v rest %d",
		reply.Protocol, reply.Timeout,
		r.st.owner(r.session), len(r.password), isZero(r.password), reply.Short, reply.ReadOnly, d.Len())
	return r.session != 0
}

func isZero(b []byte) bool { return strings.Trim(string(b), "\x00") == "" }

func (r *rawClient) dial() {
	r.nc = r.st.dial()
	r.ops = map[int32]wire.Op{}
	r.st.opened = append(r.st.opened, r.nc)
}

func (r *rawClient) write(b []byte) {
	_ = r.nc.SetWriteDeadline(time.Now().Add(r.st.readTimeout))
	_, _ = r.nc.Write(b) // if the server has closed the connection, the next read fails
}

func (r *rawClient) frame() ([]byte, error) {
	_ = r.nc.SetReadDeadline(time.Now().Add(r.st.readTimeout))
	return wire.ReadFrame(r.nc, nil, 64<<20)
}

// send writes a request and does not wait for the answer.
func (r *rawClient) send(op wire.Op, body wire.Request) {
	var e wire.Encoder
	body.Encode(&e)
	r.sendBytes(op, e.Bytes())
}

func (r *rawClient) sendBytes(op wire.Op, body []byte) {
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

// do sends a request, and logs all frames up to its answer.
func (r *rawClient) do(op wire.Op, body wire.Request) {
	r.send(op, body)
	for r.receiveFrame() {
	}
}

func (r *rawClient) doBytes(op wire.Op, body []byte) {
	r.sendBytes(op, body)
	for r.receiveFrame() {
	}
}

// drain logs the events that have arrived.
func (r *rawClient) drain() { r.do(wire.OpPing, &wire.EmptyRequest{}) }

// quit closes the session.
func (r *rawClient) quit() { r.do(wire.OpCloseSession, &wire.EmptyRequest{}) }

// receiveFrame logs one frame. It returns true if that is an event.
func (r *rawClient) receiveFrame() bool {
	frame, err := r.frame()
	if err != nil {
		r.logLine("%s", describeReadError(err))
		return false
	}
	d := wire.NewDecoder(frame)
	var head wire.ReplyHeader
	head.Decode(&d)
	if head.Xid == wire.XidNotify {
		var w wire.WatchEvent
		w.Decode(&d)
		r.logLine("  event zxid %d %v state %d %s", head.Zxid, w.Type, w.State, w.Path)
		return true
	}
	op := r.ops[head.Xid]
	r.zxid = head.Zxid
	text := ""
	if head.Err == wire.OK {
		text = " " + r.answer(op, &d)
	}
	require.NoError(r.st.t, d.Err(), "%v", op)
	if d.Len() > 0 && head.Err == wire.OK { // clients ignore the bytes after an error
		text += fmt.Sprintf(" REST %x", d.Rest())
	}
	r.logLine("%v zxid %s %v%s", op, r.st.relative(head.Zxid), head.Err, text)
	return false
}

func describeReadError(err error) string {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "no answer"
	}
	return "closed"
}

// answer returns the text of an answer's body.
func (r *rawClient) answer(op wire.Op, d *wire.Decoder) string {
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
		acl := d.ACLs() // the real server expands them in hash order
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

func (r *rawClient) data(d *wire.Decoder) string {
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

func (r *rawClient) stat(d *wire.Decoder) string {
	var s wire.Stat
	s.Decode(d)
	return fmt.Sprintf("{c%s m%s p%s version %d children %d acl %d owner %s data %d nodes %d changed %v}",
		r.st.relative(s.Czxid), r.st.relative(s.Mzxid),
		r.st.relative(s.Pzxid), s.Version, s.Cversion, s.Aversion, r.st.owner(s.EphemeralOwner), s.DataLength,
		s.NumChildren, s.Mzxid != s.Czxid)
}

func (r *rawClient) multi(d *wire.Decoder) string {
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
