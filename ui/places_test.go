package ui_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

// TestMenuCountsAllSections checks the numbers of the menu, and that the nodes of other recipes do
// not count as locks.
func TestMenuCountsAllSections(t *testing.T) { synctest.Test(t, testMenuCountsAllSections) }

func testMenuCountsAllSections(t *testing.T) {
	s := newStage(t)
	fill(t, s, "one")
	menu := regexp.MustCompile(`(?s)<ul id="f-nav">.*?</ul>`).FindString(text(t, s.get(t, "")))
	counts := map[string]string{}
	for _, item := range regexp.MustCompile(`<a href="([^"]*)".*?</svg>[^<]*<span class="n">(\d+)`).FindAllStringSubmatch(
		menu, -1) {
		counts[item[1]] = item[2]
	}
	require.Equal(t, map[string]string{"locks": "1", "elections": "2", "jobs": "1", "queues": "1", "barriers": "0",
		"workflows": "0", "members": "1", "services": "1", "configuration": "1"}, counts)

	var listed []locks.Report
	require.NoError(t, json.NewDecoder(s.get(t, "locks.json").Body).Decode(&listed))
	require.Len(t, listed, 1)
	require.Equal(t, "/locks/one", listed[0].Path)
}

// TestSearchFindsEachKind searches each kind of thing by its path, and members and instances by
// what names them.
func TestSearchFindsEachKind(t *testing.T) { synctest.Test(t, testSearchFindsEachKind) }

func testSearchFindsEachKind(t *testing.T) {
	s := newStage(t)
	fill(t, s, "one")
	for query, links := range map[string][]string{
		"one":         {"lock", "election", "job", "queue", "group", "service", "value"},
		"/config/one": {"value"}, "/groups/": {"group"}, "/services/": {"service"}, "ABSENT ONE": nil,
	} {
		body := text(t, s.get(t, "search?q="+url.QueryEscape(query)))
		for _, page := range []string{"lock", "election", "job", "queue", "group", "service", "value"} {
			want := strings.Contains(" "+strings.Join(links, " ")+" ", " "+page+" ")
			require.Equal(t, want, strings.Contains(body, `href="`+page+`?path=`), "%s: %s", query, page)
		}
	}
	body := text(t, s.get(t, "search?q=one"))
	election := strings.Index(body, "election?path=%2Fjobs%2Felection") // one leads there
	require.Positive(t, election)
	require.Less(t, strings.Index(body, "value?path="), election, "what has the text in its path comes first")
	// only the instance has this in its address
	require.Contains(t, text(t, s.get(t, "search?q=host")), "an instance or an address there")
}
