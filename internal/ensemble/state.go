package ensemble

import "slices"

// Addr is server i's address for clients, as host:port. It stays the same over a
// restart.
func (e *Ensemble) Addr(i int) string { return e.servers[i].addr }

// Addrs are the addresses of all servers.
func (e *Ensemble) Addrs() []string {
	addrs := make([]string, len(e.servers))
	for i, s := range e.servers {
		addrs[i] = s.addr
	}
	return addrs
}

// Size is the number of servers, running or not.
func (e *Ensemble) Size() int { return len(e.servers) }

// Mode returns what server i is: "leader", "follower", "observer", "standalone", or "" when it does
// not serve or does not answer.
func (e *Ensemble) Mode(i int) string { return Mode(e.Addr(i)) }

// FourLetter sends a four-letter word to server i.
func (e *Ensemble) FourLetter(i int, word string) (string, error) {
	return FourLetter(e.Addr(i), word)
}

// Counter adds up one number of "mntr" over all servers; see [Total].
func (e *Ensemble) Counter(name string) (int64, error) { return Total(e.Addrs(), name) }

// Leader is the number of the server that leads, or stands alone; -1 when none answers
// that it does.
func (e *Ensemble) Leader() int {
	for i := range e.servers {
		if isLeader(e.Mode(i)) {
			return i
		}
	}
	return -1
}

// Followers are the numbers of the servers that follow a leader.
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
