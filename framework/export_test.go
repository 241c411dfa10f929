package framework

import "reflect"

// WatchEntries counts the paths that the session keeps a watch for.
func WatchEntries(s *Session) int {
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	return len(s.watches.entries)
}

// LibraryWatches counts the channels that go-zookeeper keeps.
func LibraryWatches(s *Session) int {
	total := 0
	for _, channels := range reflect.ValueOf(s.zk.conn).Elem().FieldByName("watchers").Seq2() {
		total += channels.Len()
	}
	return total
}
