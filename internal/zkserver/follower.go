package zkserver

// follower is between a connection and the leader, with Config.Followers. The leader has the timers
// of the sessions. The follower records that a session has sent a packet, and sends this record
// with its answer to the leader's next PING. It answers the client's pings itself, also while it is
// cut off from the leader.
//
// A real follower may lose a record, because it sends its table of records and replaces it at the
// same time. It does not lose two records in a row. This follower loses every second record.
//
// The server's mutex guards it. Without Config.Followers a connection has a nil follower.
type follower struct {
	holdsUp, holdsDown bool     // messages to the leader wait in up, and messages from the leader in down
	up, down           []func() // the messages that wait, in order; each function is what the receiver does with it
	unanswered         int      // how many requests wait in up, and answers in down
	recorded           bool     // the session has sent a packet since the last PING
	lostLast           bool     // the record of the latest packet was lost
	answersItself      bool     // the follower itself is answering a ping
	delivering         bool     // deliver runs
}

// record remembers that the session has sent a packet.
func (f *follower) record() {
	f.lostLast = !f.lostLast
	f.recorded = f.recorded || !f.lostLast
}

// ping sends the leader's PING to the follower, which answers with the record. The leader then
// calls touch, if the session has sent a packet.
func (f *follower) ping(touch func()) {
	f.fromLeader(func() {
		if f.recorded {
			f.recorded = false
			f.toLeader(touch)
		}
	})
}

// toLeader sends a message to the leader, which calls take. That happens at once, or later if
// messages wait.
func (f *follower) toLeader(take func()) {
	f.up = append(f.up, take)
	f.deliver()
}

// fromLeader sends a message to the follower, which calls take. That happens at once, or later if
// messages wait.
func (f *follower) fromLeader(take func()) {
	f.down = append(f.down, take)
	f.deliver()
}

// holdsReply reports whether an answer of the leader must wait.
func (f *follower) holdsReply() bool {
	return f != nil && (f.holdsDown || len(f.down) > 0) && !f.answersItself
}

// deliver delivers the messages that need not wait, one after the other.
func (f *follower) deliver() {
	if f.delivering {
		return
	}
	f.delivering = true
	defer func() { f.delivering = false }()
	for {
		var take func()
		switch {
		case !f.holdsDown && len(f.down) > 0:
			take, f.down = f.down[0], f.down[1:]
		case !f.holdsUp && len(f.up) > 0:
			take, f.up = f.up[0], f.up[1:]
		default:
			return
		}
		take()
	}
}
