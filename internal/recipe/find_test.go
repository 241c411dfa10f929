package recipe_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/zktest"
)

// layout recognizes directories with a child of the name mark.
func layout(mark string, own ...string) recipe.Layout {
	return recipe.Layout{Recognize: func(children []string) bool { return slices.Contains(children, mark) },
		Own: append(own, mark)}
}

// findAll returns the paths that Find yields, and the texts of its errors.
func findAll(t *testing.T, m *zktest.Member, root string, most int) (found []string) {
	t.Helper()
	for one, err := range recipe.Find(t.Context(), m.Client, []string{root}, most, layout("mark", "own")) {
		if err != nil {
			one.Path = err.Error()
		}
		found = append(found, one.Path)
	}
	return found
}

func TestFindWalksInOrderPastForbiddenNodes(t *testing.T) {
	in(t, func(t *testing.T, server *zktest.Server, m *zktest.Member) {
		for _, path := range []string{"/b/mark", "/b/own/x/mark", "/b/c/mark", "/a/mark", "/d/e/mark"} {
			require.NoError(t, m.MakeDirs(t.Context(), path))
		}
		other := server.Member(t, "b",
			framework.Config{Auth: []framework.Credential{{Scheme: "digest", Auth: []byte("b:secret")}}})
		require.NoError(t, other.MakeDirs(t.Context(), "/bad/x"))
		found := findAll(t, m, "/", 100)
		require.Equal(t, []string{"/a", "/b", "/b/c"}, found[:3])
		require.Equal(t, []string{"find /bad: no permission", "/d/e"}, found[3:])
		require.Empty(t, findAll(t, m, "/missing", 100))
		found = findAll(t, m, "/b", 1)
		require.Equal(t, "/b", found[0])
		require.Contains(t, found[1], "ended before /b/c")
	})
}

func TestFindSendsFewRequests(t *testing.T) {
	in(t, func(t *testing.T, server *zktest.Server, m *zktest.Member) {
		s := session(t, m)
		var want []string
		for team := range 50 {
			ops := []framework.Op{framework.CreateOp(fmt.Sprintf("/t%02d", team), nil, framework.Persistent)}
			for n := range 100 {
				dir := fmt.Sprintf("/t%02d/q%02d", team, n)
				want = append(want, dir)
				ops = append(ops, framework.CreateOp(dir, nil, framework.Persistent),
					framework.CreateOp(dir+"/mark", nil, framework.Persistent))
			}
			_, err := s.Multi(t.Context(), ops...)
			require.NoError(t, err)
		}
		before := server.Requests()
		require.Equal(t, want, findAll(t, m, "/", 20_000))
		after := server.Requests()
		require.LessOrEqual(t, after[zktest.OpMultiRead]-before[zktest.OpMultiRead], int64(12),
			"5,000 directories, up to a thousand in each request")
		require.Equal(t, before[zktest.OpExists], after[zktest.OpExists])
	})
}

// TestFindDoesNotDescendIntoContenders: many contenders do not use up the limit of the search.
func TestFindDoesNotDescendIntoContenders(t *testing.T) {
	in(t, func(t *testing.T, _ *zktest.Server, m *zktest.Member) {
		require.NoError(t, m.MakeDirs(t.Context(), "/a/lock"))
		for n := range 50 {
			node := fmt.Sprintf("/a/lock/_c_%08d-0000-4000-8000-000000000000-lock-%010d", n, n)
			require.NoError(t, m.Create(t.Context(), node, nil, framework.Ephemeral))
		}
		require.NoError(t, m.MakeDirs(t.Context(), "/b/mark"))
		require.Equal(t, []string{"/b"}, findAll(t, m, "/", 20))
	})
}

func TestFindReadsLongPathsInSeveralRequests(t *testing.T) {
	in(t, func(t *testing.T, _ *zktest.Server, m *zktest.Member) {
		long := strings.Repeat("x", 150_000)
		var want []string
		for n := range 7 {
			path := fmt.Sprintf("/%s%d", long, n)
			require.NoError(t, m.MakeDirs(t.Context(), path+"/mark"))
			want = append(want, path)
		}
		require.Equal(t, want, findAll(t, m, "/", 100))
	})
}

func TestFindTellsLayoutsApartBelowSeveralRoots(t *testing.T) {
	in(t, func(t *testing.T, server *zktest.Server, m *zktest.Member) {
		for _, path := range []string{"/x/a/one/two", "/x/b/two/one", "/y/one", "/z/one"} {
			require.NoError(t, m.MakeDirs(t.Context(), path))
		}
		var found []recipe.Found
		before := server.Requests()[zktest.OpMultiRead]
		for one, err := range recipe.Find(t.Context(), m.Client, []string{"/y", "/x"}, 100, layout("one"),
			layout("two")) {
			require.NoError(t, err)
			found = append(found, one)
		}
		require.Equal(t, []recipe.Found{{Path: "/y"}, {Path: "/x/a"}, {Path: "/x/b", Layout: 1}}, found,
			"children of a found directory are not searched")
		require.EqualValues(t, 2, server.Requests()[zktest.OpMultiRead]-before)
	})
}
