package ensemble

import "slices"

// Addr returns server i's address for clients, as host:port. A restart does not change
// it.
func (e *Ensemble) Addr(i int) string { return e.servers[i].addr }

// Addrs returns the addresses of all servers.
func (e *Ensemble) Addrs() []string {
	addrs := make([]string, len(e.servers))
	for i, s := range e.servers {
		addrs[i] = s.addr
	}
	return addrs
}

// Size returns the number of servers, whether they run or not.
func (e *Ensemble) Size() int { return len(e.servers) }

// Mode returns the mode of server i: "leader", "follower", "observer" or "standalone", and "" if it
// does not serve or does not answer.
func (e *Ensemble) Mode(i int) string { return Mode(e.Addr(i)) }

// Log returns what server i has printed, or why it cannot be read.
func (e *Ensemble) Log(i int) string { return e.servers[i].log() }

// HasFailed reports whether server i has printed, since its last start, that an error has stopped
// it, such as a full disk. It sends no request: Mode may take so long on a busy machine that the
// server serves again in the same process meanwhile.
func (e *Ensemble) HasFailed(i int) bool { return e.servers[i].hasFailed() }

// FourLetter sends a four-letter word to server i.
func (e *Ensemble) FourLetter(i int, word string) (string, error) {
	return FourLetter(e.Addr(i), word)
}

// Counter returns the sum of one number of "mntr" over all servers; see [Total].
func (e *Ensemble) Counter(name string) (int64, error) { return Total(e.Addrs(), name) }

// Leader returns the index of the server that leads or runs standalone, or -1 if no server
// reports that it does.
func (e *Ensemble) Leader() int {
	for i := range e.servers {
		if isLeader(e.Mode(i)) {
			return i
		}
	}
	return -1
}

// Followers returns the indexes of the servers that follow a leader.
func (e *Ensemble) Followers() []int {
	var followers []int
	for i := range e.servers {
		if e.Mode(i) == "follower" {
			followers = append(followers, i)
		}
	}
	return followers
}

func isLeader(mode string) bool { return slices.Contains([]string{"leader", "standalone"}, mode) }
