package zkserver

// follower stands between a connection and the leader on a server with Config.Followers. The leader keeps the sessions' timers. A follower records that a
// session has sent something, and passes the record on with its answer to the leader's next PING. It answers the client's pings by itself, also while it is
// cut off from the leader.
//
// A record may be lost, since a real follower's table is swapped as it is passed on, but not two in a row. Here every second one is.
//
// The server's mutex guards it. A connection without a follower has nil.
type follower struct {
	holdsUp, holdsDown bool     // messages to the leader, and from it, wait
	up, down           []func() // in order; what the leader does, and what the follower does, with each message
	unanswered         int      // requests that wait in up, and answers in down
	recorded           bool     // the session has sent something since the last PING
	lostLast           bool     // that was not recorded
	answersItself      bool     // the answer that is being sent is the follower's own
	delivering         bool
}

func (f *follower) record() {
	f.lostLast = !f.lostLast
	f.recorded = f.recorded || !f.lostLast
}

// ping takes the leader's PING, and answers it with the record.
func (f *follower) ping(touch func()) {
	f.fromLeader(func() {
		if f.recorded {
			f.recorded = false
			f.toLeader(touch)
		}
	})
}

// toLeader has the leader take a message, at once or when the ones before it have arrived.
func (f *follower) toLeader(take func()) {
	f.up = append(f.up, take)
	f.deliver()
}

// fromLeader has the follower take a message.
func (f *follower) fromLeader(take func()) {
	f.down = append(f.down, take)
	f.deliver()
}

// holdsReply reports whether an answer of the leader waits.
func (f *follower) holdsReply() bool {
	return f != nil && (f.holdsDown || len(f.down) > 0) && !f.answersItself
}

// deliver hands over what nothing holds, one message after the other.
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
