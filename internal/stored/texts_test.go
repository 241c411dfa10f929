package stored_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/stored"
)

func TestTextsOfValues(t *testing.T) {
	type state string
	texts := stored.Texts[state]{"running": "", "has ended": "ended"}
	for value, text := range map[state]string{"running": "", "has ended": "ended", "newer": "newer"} {
		require.Equal(t, text, texts.TextOf(value))
		require.Equal(t, value, texts.ValueOf(text))
	}
}
