package framework

import "sync"

// sharedValues are values that several users of one session share. Each value lasts until its last
// user leaves.
type sharedValues struct {
	mu     sync.Mutex
	values map[any]*sharedValue
}

type sharedValue struct {
	value any
	users int
}

func (sh *sharedValues) init() { sh.values = map[any]*sharedValue{} }

// share returns the value of a key and counts one more user. start makes the value for the first
// user.
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
