package locks_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

// TestOptionsFitTheirLockKinds checks what the compiler accepts: the options that each With
// function returns.
func TestOptionsFitTheirLockKinds(t *testing.T) {
	kinds := []reflect.Type{
		reflect.TypeFor[locks.MutexOption](), reflect.TypeFor[locks.RWLockOption](),
		reflect.TypeFor[locks.SemaphoreOption](), reflect.TypeFor[locks.ClaimOption](),
	}
	for _, o := range []struct {
		name string
		with any
		fits [4]bool
	}{
		{"WithData", locks.WithData, [4]bool{true, true, true, true}},
		{"WithMaxHold", locks.WithMaxHold, [4]bool{true, true, true, true}},
		{"WithAsyncRelease", locks.WithAsyncRelease, [4]bool{true, true, true, true}},
		{"WithOnWait", locks.WithOnWait, [4]bool{true, true, true, false}},
		{"WithReentry", locks.WithReentry, [4]bool{true, true, false, false}},
		{"WithKazoo", locks.WithKazoo, [4]bool{true, true, false, false}},
		{"WithLocalHandoff", locks.WithLocalHandoff, [4]bool{true, false, false, false}},
	} {
		for i, kind := range kinds {
			require.Equal(t, o.fits[i], reflect.TypeOf(o.with).Out(0).Implements(kind), "%s is a %s", o.name, kind)
		}
	}
}
