package tally

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCountsArePrintedByName(t *testing.T) {
	c := Counters[string]{}
	require.Empty(t, c.String())
	require.Zero(t, c.Sum())
	c["lost reply"]++
	c["cut"] += 3
	require.Equal(t, "cut 3, lost reply 1", c.String())
	require.Equal(t, 4, c.Sum())
	b, err := json.Marshal(c)
	require.NoError(t, err)
	require.JSONEq(t, `{"cut": 3, "lost reply": 1}`, string(b))
}
