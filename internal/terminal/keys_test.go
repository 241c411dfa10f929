package terminal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeysAreParsed(t *testing.T) {
	for read, want := range map[string][]Key{
		"":                    nil,
		"aä7 ":                {"a", "ä", "7", " "},
		"\x1b[A\x1bOB\x1b[5~": {KeyUp, KeyDown, KeyPageUp},
		"\r\t\x7f\x03\x1a":    {KeyEnter, KeyTab, KeyBackspace, KeyInterrupt, KeySuspend},
		"\x1b[1;5Qj":          {"j"},
		"\x1bxk":              {"k"},
		"\x00\u202e\xffz":     {"z"},
	} {
		keys, rest := parseKeys(read)
		require.Equal(t, want, keys, "%q", read)
		require.Empty(t, rest, "%q", read)
	}
	for read, rest := range map[string]string{"j\x1b": "\x1b", "\x1b[": "\x1b[", "\x1b[1;": "\x1b[1;", "\x1bO": "\x1bO",
		"\xc3": "\xc3"} {
		_, got := parseKeys(read)
		require.Equal(t, rest, got, "%q", read)
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("\x1b[A\xc3")
	f.Fuzz(func(t *testing.T, read string) {
		_, rest := parseKeys(read)
		require.LessOrEqual(t, len(rest), 34)
	})
}
