package cli

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/internal/reportjson"
)

// Other programs may have written anything to the servers, also sequences that control a terminal.
// lockstep quotes or escapes their texts before it prints them, and JSON escapes unprintable
// characters. JSON has bytes that are not UTF-8 twice: readable as text, and exact in base64.

// QuoteUnprintable quotes a text that has unprintable characters or begins with a quotation mark.
func QuoteUnprintable(text string) string {
	if strings.HasPrefix(text, `"`) || strings.ContainsFunc(text, IsUnprintable) {
		return strconv.Quote(text)
	}
	return text
}

// QuoteName quotes as quoteUnprintable does, and also the ids that could be mistaken for no id: the
// empty one, and none.
func QuoteName(id string) string {
	if id == "" || id == "none" {
		return strconv.Quote(id)
	}
	return QuoteUnprintable(id)
}

// IsUnprintable reports whether a rune is no letter, mark, number, punctuation, symbol or space, or
// stands for bytes that are not UTF-8.
func IsUnprintable(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }

// EscapeUnprintable escapes unprintable characters, but not line breaks.
func EscapeUnprintable(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && IsUnprintable(r) }) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == '\n' || !IsUnprintable(r) {
			b.WriteString(text[:size])
		} else {
			quoted := strconv.Quote(text[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}

// InOneLine escapes unprintable characters and line breaks.
func InOneLine(text string) string {
	return strings.ReplaceAll(EscapeUnprintable(text), "\n", `\n`)
}

// MarshalLine returns a value as a line of JSON. It escapes the unprintable characters that the
// encoder leaves in strings.
func MarshalLine(value any) ([]byte, error) {
	var encoded bytes.Buffer
	if err := json.NewEncoder(&encoded).Encode(value); err != nil {
		return nil, err
	}
	return reportjson.EscapeUnprintable(encoded.Bytes()), nil
}
