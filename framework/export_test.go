package framework

// WatchEntries counts the paths that the session keeps a watch for.
func WatchEntries(s *Session) int {
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	return len(s.watches.entries)
}

// ForgetWatchdogMain undoes WatchdogMain until restore is called.
func ForgetWatchdogMain() (restore func()) {
	was := watchdogMain.Swap(false)
	return func() { watchdogMain.Store(was) }
}
