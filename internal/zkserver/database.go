package zkserver

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// ErrSessionTooLarge is wrapped by the error of Failure if the transaction that closes a session
// was larger than the servers of an ensemble accept.
var ErrSessionTooLarge = errors.New("zkserver: session has too many ephemeral nodes to be closed")

// database is the server's state without its connections: the data tree, the sessions, the watches
// and the last zxid. Each change is a transaction. A commit sends its events to their watchers at
// once.
type database struct {
	tree         *dataTree
	sessions     *sessionTracker
	dataWatches  *watchManager
	childWatches *watchManager
	zxid         int64
	clockSkew    time.Duration
	failure      error // why the server has failed; nil while it serves

	closeLimit int // the largest size in bytes of a transaction that closes a session
	onFailure  func()
	logger     *slog.Logger

	transaction transaction // reused
	triggered   []watcher   // reused
}

// newDatabase makes a database with an empty tree. The database calls onFailure once, when a
// session is too large to be closed.
func newDatabase(config Config, sessions *sessionTracker, onFailure func()) *database {
	tree := newDataTree()
	tree.ttlNodes, tree.enforceQuotas = config.ExtendedTypes, config.EnforceQuota
	return &database{
		tree: tree, sessions: sessions, dataWatches: newWatchManager(), childWatches: newWatchManager(),
		closeLimit: 2 * config.JuteMaxBuffer, onFailure: onFailure, logger: config.Logger,
	}
}

// beginTransaction starts a transaction of a client, or of the server itself if session is 0. Its
// zxid is not used again, even if it fails.
func (db *database) beginTransaction(session int64, ids []wire.Identity) *transaction {
	db.zxid++
	t := &db.transaction
	*t = transaction{tree: db.tree, session: session, ids: ids, zxid: db.zxid, now: db.clockTime().UnixMilli(),
		events: t.events[:0], undo: t.undo[:0]}
	return t
}

// commitTransaction ends a transaction and sends its events.
func (db *database) commitTransaction(t *transaction) {
	for _, e := range t.commit() {
		db.triggerWatches(e)
	}
}

// triggerWatches sends an event to its watchers, to each once and in the order of their
// connections. A deletion is also an event of the watches on children.
func (db *database) triggerWatches(e event) {
	triggered := db.triggered[:0]
	if e.typ == wire.EventNodeChildrenChanged {
		triggered = db.childWatches.triggerWatches(e, triggered)
	} else {
		triggered = db.dataWatches.triggerWatches(e, triggered)
	}
	if e.typ == wire.EventNodeDeleted {
		triggered = db.childWatches.triggerWatches(e, triggered)
	}
	slices.SortFunc(triggered, func(a, b watcher) int { return cmp.Compare(a.connectionID(), b.connectionID()) })
	for _, w := range slices.Compact(triggered) {
		w.processEvent(e)
	}
	clear(triggered)
	db.triggered = triggered[:0]
}

// removeWatcher removes every watch of a connection.
func (db *database) removeWatcher(w watcher) {
	db.dataWatches.removeWatcher(w)
	db.childWatches.removeWatcher(w)
}

func (db *database) countWatches() int { return db.dataWatches.total + db.childWatches.total }

// clockTime is the time of day on the server's clock.
func (db *database) clockTime() time.Time { return time.Now().Add(db.clockSkew) }

// openSession makes a session. This is a transaction, and so is the close of a session.
func (db *database) openSession(timeout time.Duration) *session {
	db.zxid++
	return db.sessions.addSession(timeout)
}

// The sizes of the parts of a transaction that closes a session, besides its paths: header, number
// of paths and digest, and the length before each path.
const closeOverhead, pathOverhead = 32 + 4 + 12, 4

// closeSize returns the size in bytes of the transaction that closes the session, which has the
// path of each ephemeral node.
func (db *database) closeSize(sess *session) int {
	size := closeOverhead
	for _, n := range db.tree.ephemeralsOf(sess.id) {
		size += pathOverhead + len(n.path)
	}
	return size
}

// closeSession removes a session and its ephemeral nodes under one zxid.
//
// If the transaction is too large, the server fails for good, as an ensemble does. The servers of
// an ensemble can write such a transaction. But they cannot read it again if it is larger than
// jute.maxbuffer and zookeeper.jute.maxbuffer.extrasize together, whose defaults are equal
// (ZOOKEEPER-4306). Then the followers leave their leader, and each later leader fails when it
// reads its own log.
func (db *database) closeSession(sess *session) {
	ephemerals := db.tree.ephemeralsOf(sess.id)
	if size := db.closeSize(sess); size > db.closeLimit {
		db.failure = fmt.Errorf(
			"%w: session %s, %d nodes, a transaction of %d bytes where %d is the limit; a real ensemble "+
				"could not serve any more (ZOOKEEPER-4306)", ErrSessionTooLarge, sessionName(sess.id), len(ephemerals),
			size, db.closeLimit)
		db.logger.Error("the server has failed", "error", db.failure)
		db.onFailure()
		return
	}
	t := db.beginTransaction(0, nil)
	db.sessions.removeSession(sess)
	for _, n := range slices.Clone(ephemerals) {
		t.removeNode(n)
	}
	delete(db.tree.ephemerals, sess.id)
	db.commitTransaction(t)
}

// removeExpiredNodes does the work of the real server's container manager. It deletes expired
// containers and TTL nodes, each in a transaction of its own. If one of these deletions makes
// another node expire, the next call deletes that node, as on the real server.
func (db *database) removeExpiredNodes() {
	for _, n := range db.tree.expiredNodes(db.clockTime()) {
		t := db.beginTransaction(0, nil)
		t.removeNode(n)
		db.commitTransaction(t)
	}
}
