package wire

import (
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// JavaString is what the Java server makes of a string. It reads UTF-8, with
// U+FFFD for what is none, and writes a character beyond the basic plane as two
// surrogates of three bytes each. Where it takes several wrong bytes for one,
// here each counts.
func JavaString(b []byte) string {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return rewriteSurrogates(b)
		}
	}
	return string(b)
}

func rewriteSurrogates(b []byte) string {
	out := make([]byte, 0, 2*len(b))
	for _, r := range string(b) {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			out = appendSurrogate(appendSurrogate(out, high), low)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return string(out)
}

// appendSurrogate writes what package utf8 rightly refuses to write.
func appendSurrogate(out []byte, r rune) []byte {
	return append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}
