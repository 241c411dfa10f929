package cli

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"
)

// Lists without a NAME look below /lockstep, where the subcommands keep what they make. Programs
// choose their own paths.
const (
	searchTime   = 2 * time.Second // an empty list looks elsewhere for this time at most
	namedAtFirst = 3               // how many paths it names
)

// PrintNone says that there is nothing to list, and names some of what is elsewhere, so that nobody
// takes the empty list for a fact about the whole cluster. list is the subcommand that lists a
// path. search yields the paths of all that there are.
func PrintNone(ctx context.Context, streams *Streams, what, root, list string,
	search func(context.Context) iter.Seq2[string, error]) {
	text := fmt.Sprintf("no %s at or below %s", what, root)
	if root == "/" {
		streams.PrintNotice("%s", text)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	var paths []string
	for path, err := range search(ctx) {
		if err == nil {
			paths = append(paths, QuoteName(path))
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
	streams.PrintNotice("%s", text)
}

// PathsOf yields the paths of some of what is listed, and the errors.
func PathsOf[R any](list iter.Seq2[R, error], pathIf func(R) (path string, is bool)) iter.Seq2[string, error] {
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
