package cli

import (
	"encoding/json"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/reportjson"
)

func TestHarmlessTextsStayAsTheyAre(t *testing.T) {
	for in, want := range map[string]string{
		"two\nlines, «größer» 日本": "two\nlines, «größer» 日本",
		"\x1b]0;title\a":          `\x1b]0;title\a`,
		"a\xffb\tc":               `a\xffb\tc`,
		"\u202egnp.exe":           `\u202egnp.exe`,
		`"quoted"`:                `"quoted"`,
	} {
		require.Equal(t, want, EscapeUnprintable(in))
	}
	require.Equal(t, `"\"quoted\""`, QuoteUnprintable(`"quoted"`), "not to be taken for quoted text")
}

// FuzzForeignTexts are shown without anything that a terminal may obey, and JSON means the same as
// before.
func FuzzForeignTexts(f *testing.F) {
	for _, seed := range []string{"", "plain", "\x1b[2J", "\xff\xfe", "\u009b31m", "\u2028\u202e", "\U000e0001",
		"\ufffd", "\n\r\t\"\\", "\x7f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, shown := range []string{EscapeUnprintable(text), QuoteUnprintable(text), QuoteName(text)} {
			require.True(t, utf8.ValidString(shown))
			for _, r := range shown {
				require.True(t, r == '\n' || unicode.IsPrint(r), "%q", shown)
			}
		}
		line, err := MarshalLine(map[string]string{"text": text})
		require.NoError(t, err)
		for _, r := range string(line) {
			require.True(t, r == '\n' || unicode.IsPrint(r) || r == unicode.ReplacementChar, "%q", line)
		}
		plain, err := json.Marshal(map[string]string{"text": text})
		require.NoError(t, err)
		require.JSONEq(t, string(plain), string(line))
		if bytes := reportjson.ExactBytes(text); bytes != nil {
			require.Equal(t, text, string(bytes))
		} else {
			require.True(t, utf8.ValidString(text))
		}
	})
}
