package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// Lists without a NAME look below /lockstep, where the subcommands keep what they make. Programs choose their own paths.
const (
	searchTime   = 2 * time.Second // an empty list looks elsewhere for this time at most
	namedAtFirst = 3               // how many paths it names
)

// printNone says that there is nothing to list, and names some of what is elsewhere, so that nobody takes the empty list for a fact about
// the whole cluster. list is the subcommand that lists a path. search yields the paths of all that there are.
func printNone(ctx context.Context, what, root, list string, search func(context.Context) iter.Seq2[string, error]) {
	text := fmt.Sprintf("no %s at or below %s", what, root)
	if root == "/" {
		printNotice("%s", text)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	var paths []string
	for path, err := range search(ctx) {
		if err == nil {
			paths = append(paths, quoteName(path))
		}
		if len(paths) > namedAtFirst || ctx.Err() != nil {
			break
		}
	}
	switch {
	case len(paths) == 0:
	case len(paths) > namedAtFirst:
		text += fmt.Sprintf("; elsewhere %s, and more: %s /", strings.Join(paths[:namedAtFirst], ", "), list)
	default:
		text += fmt.Sprintf("; elsewhere %s: %s /", strings.Join(paths, ", "), list)
	}
	printNotice("%s", text)
}

// findLocks returns a search for all used locks, or for all elections.
func findLocks(client *framework.Client, elections bool) func(context.Context) iter.Seq2[string, error] {
	shown := locksFilter{}
	return func(ctx context.Context) iter.Seq2[string, error] {
		return pathsOf(locks.List(ctx, client, "/"), func(r *locks.Report) (string, bool) {
			return r.Path, (r.Kind == locks.ElectionLock) == elections && isUsed(r) && shown.admits(r, time.Now())
		})
	}
}

// pathsOf yields the paths of some of what is listed, and the errors.
func pathsOf[R any](list iter.Seq2[R, error], pathIf func(R) (path string, is bool)) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for r, err := range list {
			path, is := "", err != nil
			if err == nil {
				path, is = pathIf(r)
			}
			if is && !yield(path, err) {
				return
			}
		}
	}
}

// adviceFor says what to do about a NAME below which nothing is: a program may have given the same name as a path.
func adviceFor(ctx context.Context, client *framework.Client, path, list string) string {
	if _, name, within := cutKind(path); within {
		if _, err := client.Exists(ctx, "/"+name); err == nil {
			return fmt.Sprintf("a NAME that does not begin with / is below /lockstep; there is also a node %s: %s %s", quoteName("/"+name), list, shellWord("/"+name))
		} else if !errors.Is(err, framework.ErrNoNode) {
			printWarning("%v", err)
		}
	}
	return "see which there are: " + list
}

// cutKind divides the path of a NAME, such as /lockstep/locks/deploy.
func cutKind(path string) (kind, name string, within bool) {
	rest, within := strings.CutPrefix(path, "/lockstep/")
	kind, name, named := strings.Cut(rest, "/")
	return kind, name, within && named
}
