package recipe

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// readSizes reads nodes of given sizes with inRequests, and returns their sizes and how many each request has read. An answer has most bytes, or is too large.
func readSizes(t *testing.T, sizes []int, most int) (read, requests []int) {
	var paths []string
	of := map[string]int{}
	for i, size := range sizes {
		paths = append(paths, fmt.Sprint("/", i))
		of[paths[i]] = size
	}
	nodes, err := inRequests(paths, func(some []string) (answer []int, err error) {
		total := 0
		for _, path := range some {
			total += of[path]
			answer = append(answer, of[path])
		}
		if total > most {
			return nil, framework.ErrTooLarge
		}
		requests = append(requests, len(some))
		return answer, nil
	}, func(size int) int { return max(size, 0) }, func(error) int { return -1 })
	require.NoError(t, err)
	return nodes, requests
}

// TestManySmallNodesAreReadInFewRequests: the first request has a hundred nodes, and the others a thousand.
func TestManySmallNodesAreReadInFewRequests(t *testing.T) {
	sizes := make([]int, 3000)
	for i := range sizes {
		sizes[i] = 10
	}
	read, requests := readSizes(t, sizes, 64<<20)
	require.Equal(t, sizes, read)
	require.Equal(t, []int{100, 1000, 1000, 900}, requests)
}

// TestNodeThatIsTooLargeForAnAnswerHasItsOwnError beside others, which are read.
func TestNodeThatIsTooLargeForAnAnswerHasItsOwnError(t *testing.T) {
	sizes := make([]int, 300)
	sizes[20], sizes[250] = 101, 101
	read, _ := readSizes(t, sizes, 100)
	sizes[20], sizes[250] = -1, -1
	require.Equal(t, sizes, read)
}
