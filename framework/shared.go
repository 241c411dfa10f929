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

// share returns the value of a key and counts its user; the first one's is made by start.
func (sh *sharedValues) share(key any, start func() any) any {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	v := sh.values[key]
	if v == nil {
		v = &sharedValue{value: start()}
		sh.values[key] = v
	}
	v.users++
	return v.value
}

// unshare ends one use of a value.
func (sh *sharedValues) unshare(key any) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	v := sh.values[key]
	if v.users--; v.users == 0 {
		delete(sh.values, key)
	}
}
