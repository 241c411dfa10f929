// Package stored normalizes what records in nodes hold: text that JSON can hold, times that can be
// encoded, and the texts of values that applications see with other texts.
package stored

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Text returns a text as a record holds it: JSON has UTF-8 only, so U+FFFD replaces other bytes. A
// text that is read again is then the one that was stored. Call it before a text is stored or
// compared.
func Text(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// Excerpt returns the longest beginning of Text with at most most bytes that ends with a whole
// character.
func Excerpt(text string, most int) string {
	text = Text(text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// Shorten returns Text, or if it has more than most bytes, an excerpt that ends with an ellipsis.
func Shorten(text string, most int) string {
	const ellipsis = "…"
	if text = Text(text); len(text) > most {
		return Excerpt(text, most-len(ellipsis)) + ellipsis
	}
	return text
}

// CheckMetadata refuses metadata with an empty key, or with text that is not UTF-8: others look
// keys and values up as they were given.
func CheckMetadata(m map[string]string) error {
	for k, v := range m {
		switch {
		case k == "":
			return fmt.Errorf("metadata: the key of %q is empty", v)
		case !utf8.ValidString(k) || !utf8.ValidString(v):
			return fmt.Errorf("metadata: %q: %q is not UTF-8", k, v)
		}
	}
	return nil
}

// Time returns a time that was read from a node, or the zero time for one that JSON cannot hold in
// each time zone. Any client with write permission may have written the time.
func Time(t time.Time) time.Time {
	if y := t.UTC().Year(); y < 1 || y > 9998 {
		return time.Time{}
	}
	return t
}
