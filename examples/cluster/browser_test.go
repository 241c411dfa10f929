//go:build unix

package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/internal/testkit/browser"
	"github.com/lockstep-go/lockstep/ui"
)

// TestTheTwelveQuestionsInABrowser clicks as docs/ui.md says, in Chromium, and logs the seconds of
// that table: from the request for the overview until the last page shows the answer.
func TestTheTwelveQuestionsInABrowser(t *testing.T) {
	browser.Require(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	env, err := demo.Open(ctx, nil, 30*time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, env.Close()) })
	on := tourOf(env)
	t.Cleanup(on.end)
	require.NoError(t, on.begin(ctx))
	page, err := ui.New(env.Client)
	require.NoError(t, err)
	t.Cleanup(page.Close)
	v := browser.Visit(ctx, t, page)
	v.Await(t, "a growing queue and a failed job", func(s browser.Shown) bool {
		return strings.Contains(s.Text, "growing queue") && strings.Contains(s.Text, "failed")
	})
	for _, q := range questionsOfPage(t) {
		began := time.Now()
		v.Go(t, "", "the overview", func(s browser.Shown) bool { return strings.Contains(s.Text, "Seen") })
		at := "" // where it has clicked
		for _, click := range q.clicks {
			at = v.Await(t, "a link "+click, func(s browser.Shown) bool {
				return s.URL != at &&
					slices.ContainsFunc(s.Links, func(text string) bool { return strings.HasPrefix(text, click) })
			}).URL
			v.Do(browser.Order{Link: click})
		}
		v.Await(t, "the answer to: "+q.text, func(s browser.Shown) bool {
			text := squeeze(s.Text)
			missing := func(answer string) bool { return !strings.Contains(text, squeeze(answer)) }
			return s.URL != at && !slices.ContainsFunc(q.answers, missing)
		})
		t.Logf("%.1f s, %d clicks: %s", time.Since(began).Seconds(), len(q.clicks), q.text)
	}
}

// squeeze leaves out white space: a browser breaks lines within a path.
func squeeze(text string) string { return strings.Join(strings.Fields(text), "") }
