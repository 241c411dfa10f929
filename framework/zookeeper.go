package framework

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockstep-go/lockstep/internal/link"
)

// zkConn is go-zookeeper's connection, kept to one session by a link.Monitor. Its calls block until
// the connection answers, breaks or is closed; their errors are this package's.
type zkConn struct {
	conn  *zk.Conn
	gone  chan struct{} // closed when the library's goroutines have ended
	armed *armed
}

// openZK starts the library on one session. changed is called for each watch event, from the
// receiving goroutine, and must not block.
func openZK(cfg Config, mon *link.Monitor, srv *servers, log *slog.Logger, set *armed, changed func(Event)) (*zkConn, error) {
	dial := func(network, address string, _ time.Duration) (net.Conn, error) {
		if err := srv.rest(mon.Context()); err != nil {
			return nil, err
		}
		return mon.Dial(network, address, cfg.DialTimeout)
	}
	tell := func(e zk.Event) {
		if kind, ok := eventKinds[e.Type]; ok {
			set.fired(kind, e.Path)
			changed(Event{Kind: kind, Path: e.Path})
		}
	}
	conn, events, err := zk.Connect(cfg.Servers, cfg.SessionTimeout,
		zk.WithHostProvider(hostProvider{srv, mon}), zk.WithDialer(dial),
		zk.WithEventCallback(tell), zk.WithLogger(zkLogger{log}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	z := &zkConn{conn: conn, gone: make(chan struct{}), armed: set}
	go func() {
		defer close(z.gone)
		for range events { // the callback has seen them; the channel's end is the library's end
		}
	}()
	return z, nil
}

// close asks the server to end the session, if it is reachable, and the library to stop.
func (z *zkConn) close() { z.conn.Close() }

func (z *zkConn) addAuth(c Credential) error { return zkError(z.conn.AddAuth(c.Scheme, c.Auth)) }

func (z *zkConn) get(path string, watch bool) ([]byte, Stat, error) {
	if !watch {
		data, st, err := z.conn.Get(path)
		return data, stat(st), zkError(err)
	}
	z.armed.asking(watchData, path)
	data, st, _, err := z.conn.GetW(path) // events come through the callback
	z.armed.asked(watchData, path, err == nil)
	return data, stat(st), zkError(err)
}

func (z *zkConn) exists(path string, watch bool) (Stat, error) {
	var ok bool
	var st *zk.Stat
	var err error
	if watch {
		z.armed.asking(watchExists, path)
		ok, st, _, err = z.conn.ExistsW(path)
		z.armed.asked(watchExists, path, err == nil)
	} else {
		ok, st, err = z.conn.Exists(path)
	}
	switch {
	case err != nil: // ok may be true beside an error
		return Stat{}, zkError(err)
	case !ok:
		return Stat{}, ErrNoNode
	}
	return stat(st), nil
}

func (z *zkConn) children(path string, watch bool) ([]string, Stat, error) {
	if !watch {
		names, st, err := z.conn.Children(path)
		return names, stat(st), zkError(err)
	}
	z.armed.asking(watchChildren, path)
	names, st, _, err := z.conn.ChildrenW(path)
	z.armed.asked(watchChildren, path, err == nil)
	return names, stat(st), zkError(err)
}

func (z *zkConn) create(path string, data []byte, mode Mode, acl []ACL) (string, error) {
	if mode == Container {
		got, err := z.conn.CreateContainer(path, data, int32(mode), zkACL(acl))
		return got, zkError(err)
	}
	got, err := z.conn.Create(path, data, int32(mode), zkACL(acl))
	return got, zkError(err)
}

func (z *zkConn) set(path string, data []byte, version int32) (Stat, error) {
	st, err := z.conn.Set(path, data, version)
	return stat(st), zkError(err)
}

func (z *zkConn) delete(path string, version int32) error {
	return zkError(z.conn.Delete(path, version))
}

func (z *zkConn) sync(path string) error {
	_, err := z.conn.Sync(path)
	return zkError(err)
}

// multi runs a transaction. On a refusal, the results say which operation was refused.
func (z *zkConn) multi(reqs []any) ([]OpResult, error) {
	rs, err := z.conn.Multi(reqs...)
	out := make([]OpResult, len(rs))
	for i, r := range rs {
		out[i] = OpResult{Path: r.String, Stat: stat(r.Stat), Err: zkError(r.Error)}
	}
	return out, zkError(err)
}

// The requests of a transaction, as the library wants them.
func checkRequest(path string, version int32) any {
	return &zk.CheckVersionRequest{Path: path, Version: version}
}
func createRequest(path string, data []byte, mode Mode, acl []ACL) any {
	return &zk.CreateRequest{Path: path, Data: data, Acl: zkACL(acl), Flags: int32(mode)}
}
func setRequest(path string, data []byte, version int32) any {
	return &zk.SetDataRequest{Path: path, Data: data, Version: version}
}
func deleteRequest(path string, version int32) any {
	return &zk.DeleteRequest{Path: path, Version: version}
}

var errorKinds = map[error]error{
	zk.ErrNoNode: ErrNoNode, zk.ErrNodeExists: ErrNodeExists, zk.ErrBadVersion: ErrBadVersion, zk.ErrNotEmpty: ErrNotEmpty,
	zk.ErrNoAuth: ErrNoAuth, zk.ErrAuthFailed: ErrAuthFailed, zk.ErrInvalidPath: ErrInvalidPath, zk.ErrShortBuffer: ErrTooLarge,
	zk.ErrConnectionClosed: ErrSuspended, zk.ErrNoServer: ErrSuspended, zk.ErrClosing: ErrSuspended,
	zk.ErrSessionMoved: ErrSuspended, zk.ErrSessionExpired: ErrSuspended,
	link.ErrClosed: ErrSuspended, link.ErrSessionOver: ErrSuspended,
}

// zkError maps the library's errors to this package's. A lost session is ErrSuspended here: whether
// it is lost is for the Session to say.
func zkError(err error) error {
	if err == nil {
		return nil
	}
	if kind, ok := errorKinds[err]; ok {
		return kind
	}
	var ne net.Error
	if errors.As(err, &ne) {
		return ErrSuspended
	}
	return fmt.Errorf("zookeeper: %w", err)
}

func stat(s *zk.Stat) Stat {
	if s == nil {
		return Stat{}
	}
	return Stat{
		Czxid: s.Czxid, Mzxid: s.Mzxid, Pzxid: s.Pzxid,
		Ctime: time.UnixMilli(s.Ctime), Mtime: time.UnixMilli(s.Mtime),
		Version: s.Version, Cversion: s.Cversion, Aversion: s.Aversion,
		EphemeralOwner: s.EphemeralOwner, DataLength: s.DataLength, NumChildren: s.NumChildren,
	}
}

func zkACL(acl []ACL) []zk.ACL {
	out := make([]zk.ACL, len(acl))
	for i, a := range acl {
		out[i] = zk.ACL{Perms: int32(a.Perms), Scheme: a.Scheme, ID: a.ID}
	}
	return out
}

// The modes of a created node.
const (
	// Persistent stays until it is deleted.
	Persistent Mode = zk.FlagPersistent
	// Ephemeral is deleted when the creator's session ends.
	Ephemeral Mode = zk.FlagEphemeral
	// PersistentSequential gets a rising number at the end of its name.
	PersistentSequential Mode = zk.FlagSequence
	// EphemeralSequential is ephemeral and sequential.
	EphemeralSequential Mode = zk.FlagEphemeralSequential
	// Container is deleted by the server some time after its last child.
	Container Mode = zk.FlagContainer
)

var eventKinds = map[zk.EventType]EventKind{
	zk.EventNodeCreated: NodeCreated, zk.EventNodeDeleted: NodeDeleted,
	zk.EventNodeDataChanged: NodeChanged, zk.EventNodeChildrenChanged: ChildrenChanged,
}

// hostProvider gives the library the servers' rotation. Names are resolved at each dial, so that
// a name that cannot be resolved now is only another failed attempt.
type hostProvider struct {
	*servers
	mon *link.Monitor
}

func (hostProvider) Init([]string) error { return nil }
func (h hostProvider) Len() int          { return len(h.list) }

// Connected is not believed before the session's life is proven on the connection.
func (hostProvider) Connected() {}

// Next makes the library pause, and notice that it was closed, once no connection can be had any more.
func (h hostProvider) Next() (server string, retryStart bool) { return h.servers.Next(), h.mon.Over() }

// zkLogger passes what the library says on at debug level: its errors are reported elsewhere.
type zkLogger struct{ *slog.Logger }

func (l zkLogger) Printf(format string, args ...any) { l.Debug(fmt.Sprintf(format, args...)) }
