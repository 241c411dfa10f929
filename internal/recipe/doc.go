// Package recipe holds what the recipes share and applications do not see:
//
//   - [OnSession] repeats a function on session after session, and classifies its errors in one place.
//   - [WaitForWatch] and [WaitForFirst] wait for a watch, the session and the context at once.
//   - [Decode] and [Unknown.Encode] store versioned JSON records that keep the fields of later releases.
//   - [Backoff] and [RetryPauses] pause between attempts.
//   - [EnsembleClock] estimates the ensemble's time.
//
// Background tasks that a Close must wait for are in [internal/background], since framework needs them too.
//
// [internal/background]: https://pkg.go.dev/github.com/lockstep-go/lockstep/internal/background
package recipe
