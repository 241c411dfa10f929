package framework

import "sync"

// sharedValues are values that the users of one session keep together, each as long as somebody uses it.
type sharedValues struct {
	mu     sync.Mutex
	values map[any]*sharedValue
}

type sharedValue struct {
	value any
	users int
}

func (sh *sharedValues) init() { sh.values = map[any]*sharedValue{} }

// Share returns the session's value of a key and counts its user; the first one's is made by start.
// Each use ends with Unshare, the last of which forgets the value. It is how recipes on one session
// find each other, such as waiters for one lock. Use a key of an unexported type.
func (s *Session) Share(key any, start func() any) any {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	v := s.shared.values[key]
	if v == nil {
		v = &sharedValue{value: start()}
		s.shared.values[key] = v
	}
	v.users++
	return v.value
}

// Unshare ends one use of a shared value.
func (s *Session) Unshare(key any) {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	v := s.shared.values[key]
	if v.users--; v.users == 0 {
		delete(s.shared.values, key)
	}
}
