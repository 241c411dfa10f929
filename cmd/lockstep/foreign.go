package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/locks"
)

// Other programs may have written anything to the servers, also sequences that control a terminal.
// lockstep quotes or escapes their texts before it prints them, and JSON escapes unprintable
// characters. JSON has bytes that are not UTF-8 twice: readable as text, and exact in base64.

// quoteUnprintable quotes a text that has unprintable characters or begins with a quotation mark.
func quoteUnprintable(text string) string {
	if strings.HasPrefix(text, `"`) || strings.ContainsFunc(text, isUnprintable) {
		return strconv.Quote(text)
	}
	return text
}

// quoteName quotes as quoteUnprintable does, and also the ids that could be mistaken for no id: the
// empty one, and none.
func quoteName(id string) string {
	if id == "" || id == "none" {
		return strconv.Quote(id)
	}
	return quoteUnprintable(id)
}

// isUnprintable reports whether a rune is no letter, mark, number, punctuation, symbol or space, or
// stands for bytes that are not UTF-8.
func isUnprintable(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }

// escapeUnprintable escapes unprintable characters, but not line breaks.
func escapeUnprintable(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && isUnprintable(r) }) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == '\n' || !isUnprintable(r) {
			b.WriteString(text[:size])
		} else {
			quoted := strconv.Quote(text[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}

// inOneLine escapes unprintable characters and line breaks.
func inOneLine(text string) string {
	return strings.ReplaceAll(escapeUnprintable(text), "\n", `\n`)
}

// marshalLine returns a value as a line of JSON. It escapes the unprintable characters that the
// encoder leaves in strings.
func marshalLine(value any) ([]byte, error) {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, r := range encoded.String() {
		switch {
		case r == '\n' || r == unicode.ReplacementChar || !isUnprintable(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes(), nil
}

// bytesIfInvalid returns a text's bytes if JSON would change them, else nil.
func bytesIfInvalid(text string) []byte {
	if utf8.ValidString(text) {
		return nil
	}
	return []byte(text)
}

// jsonTime returns a time in UTC as JSON can hold it: any client may have stored another year, and
// that must not end a list. Then, and for no time, it returns zero.
func jsonTime(t time.Time) time.Time {
	if t = t.UTC(); t.IsZero() || t.Year() < 0 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// reportJSON is a report about a lock as JSON.
type reportJSON struct {
	*locks.Report
	Holders []entryJSON `json:"holders"`
	Waiters []entryJSON `json:"waiters"`
	Others  []entryJSON `json:"others,omitempty"`
}

type entryJSON struct {
	locks.Entry
	OwnerBase64 []byte `json:"owner_base64,omitempty"`
	DataBase64  []byte `json:"data_base64,omitempty"`
}

func reportView(r *locks.Report) reportJSON {
	return reportJSON{r, entryViews(r.Holders), entryViews(r.Waiters), entryViews(r.Others)}
}

func entryViews(entries []locks.Entry) []entryJSON {
	if entries == nil {
		return nil
	}
	views := make([]entryJSON, len(entries))
	for i, e := range entries {
		views[i] = entryJSON{e, bytesIfInvalid(e.Owner), bytesIfInvalid(e.Data)}
	}
	return views
}
