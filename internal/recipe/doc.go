// Package recipe has the code that the recipes share and that applications do not see:
//
//   - [OnSession] repeats a function on session after session, and classifies the errors of all
//     recipes in the same way.
//   - [WaitForWatch] and [WaitForFirst] wait for a watch, the session and the context at once.
//   - [Decode] and [Unknown.Encode] store versioned JSON records that keep the fields of later
//     releases.
//   - [Backoff] and [RetryPauses] pause between attempts.
//   - [EnsembleClock] estimates the ensemble's time.
//   - [GetMany] and [ListMany] read many nodes in few requests, [Walk] visits the nodes of a tree, and
//     [Find] searches a tree for a recipe's directories.
//   - [OwnerOf] describes this process, for records.
//   - [FinishCleanup] waits for the end of a cleanup, also if the caller's context has ended.
//   - [WhileNodeExists] returns a context that ends with a node.
//   - [CheckClientAndPath] and [ApplyOptions] check the arguments of constructors.
//
// Tasks in the background, which a Close waits for, are in [internal/background], because framework
// needs them too.
//
// [internal/background]: https://pkg.go.dev/github.com/lockstep-go/lockstep/internal/background
package recipe
