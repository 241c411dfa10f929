package wire

import (
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// JavaString returns a string as the Java server returns it to clients. That
// server decodes UTF-8, with U+FFFD for invalid bytes. It encodes a character
// beyond the basic plane as two surrogates of three bytes each. One difference:
// the Java server replaces some sequences of invalid bytes by one U+FFFD, and
// JavaString replaces each byte.
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

// appendSurrogate appends a surrogate in three bytes, which package utf8 does not
// encode because it is not valid UTF-8.
func appendSurrogate(out []byte, r rune) []byte {
	return append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}
