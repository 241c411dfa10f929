// Package usercode calls functions of the user's: handlers, jobs, callbacks.
package usercode

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Call calls f in a goroutine of its own, and waits until that has ended. A panic of f is an error
// that wraps panicked, and so is the end of the goroutine by runtime.Goexit, as testing.T's FailNow
// does. The log has the stack of a panic, under a message that begins with name and with the
// attributes attrs.
func Call(log *slog.Logger, panicked error, name string, attrs []any, f func() error) error {
	ended := make(chan error)
	go func() {
		err := fmt.Errorf("%w: it has ended its goroutine (runtime.Goexit)", panicked) // unless f returns
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("%w: %v", panicked, v)
				log.Error(name+" panicked", append(attrs, "panic", v, "stack", string(debug.Stack()))...)
			}
			ended <- err
		}()
		err = f()
	}()
	return <-ended
}

// Try calls f, which must not block, in the caller's goroutine: a codec, a check of a value. A
// panic of f is an error.
func Try(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return f()
}
