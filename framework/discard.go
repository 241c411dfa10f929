package framework

import "sync"

// Discarded is a deletion in the background.
type Discarded struct {
	s      *Session
	done   chan struct{}
	once   sync.Once
	queued func()

	// Guarded by the session's deletions until done is closed.
	zxid    int64
	paths   []string // that are still to be deleted
	refused []string // that are deleted after the others: the servers have refused them
	own     Created  // is deleted too while it is this session's node, unless its path is ""
	looked  bool     // the servers have said whether it is, and nothing was sent since
	ours    bool     // what they have said
	try     int      // the number of the latest try
	retries *Retries
}

// Done is closed when the nodes are gone or the session has ended.
func (d *Discarded) Done() <-chan struct{} { return d.done }

// Zxid is the transaction that deleted the node, or 0 when it is not known. It may be asked for once
// Done is closed.
func (d *Discarded) Zxid() int64 { return d.zxid }

func (d *Discarded) written() {
	if d.queued != nil {
		d.once.Do(d.queued)
	}
}

// end tells that the nodes are gone, or that there is no session to delete them in.
func (d *Discarded) end() {
	close(d.done)
	d.s.tasks.end()
}

// Discard deletes nodes of this session in the background, until they are gone or the session has
// ended, and returns at once. Client.Close waits for it.
func (s *Session) Discard(paths ...string) *Discarded { return s.DiscardThen(nil, paths...) }

// DiscardThen is Discard, and calls queued once: when the deletion is in the
// connection's queue, or when the nodes are known to be gone. Several nodes are deleted in one transaction. Whatever this session asks for later reaches the
// servers later: if the connection is lost before the answer, the deletion is the first request on the next one. That does not hold for what the servers refuse to
// delete, which is asked again with pauses. queued is not called when the session ends before, and must
// not block; it may be called before DiscardThen returns.
func (s *Session) DiscardThen(queued func(), paths ...string) *Discarded {
	return s.discard(queued, Created{}, paths)
}

// DiscardOwn is DiscardThen for a node whose name others may use too: before each try the session looks whether the node
// is still the one that it has created. The nodes of companions, whose names nobody else uses, are
// deleted in the same transaction, or by themselves when the node is another's.
func (s *Session) DiscardOwn(queued func(), node Created, companions ...string) *Discarded {
	return s.discard(queued, node, companions)
}

func (s *Session) discard(queued func(), own Created, paths []string) *Discarded {
	d := &Discarded{s: s, done: make(chan struct{}), queued: queued, own: own, paths: append([]string(nil), paths...), retries: newRetries(s.client.cfg)}
	if !s.tasks.begin() { // the session has ended, and the nodes with it
		close(d.done)
		return d
	}
	s.deletions.start(d)
	return d
}
