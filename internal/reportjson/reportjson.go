// Package reportjson has what the JSON forms of reports share. The library makes these forms, and
// the command line prints them: names are snake_case, times are RFC 3339 in UTC and left out when
// unknown, sessions are hexadecimal, durations are seconds, and bytes that are not UTF-8 are there
// twice, as text and in a field that ends with "_base64".
package reportjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/internal/stored"
)

// Time returns a time in UTC, or the zero time for one that JSON cannot hold: any client may have
// stored a year after 9999, and that must not end a list.
func Time(t time.Time) time.Time { return stored.Time(t).UTC() }

// ExactBytes returns a text's bytes if JSON would change them, else nil.
func ExactBytes(text string) []byte {
	if utf8.ValidString(text) {
		return nil
	}
	return []byte(text)
}

// Item is a queue's item: its bytes as text, and as they are if JSON would change them.
type Item struct {
	Text   string `json:"item"`
	Base64 []byte `json:"item_base64,omitempty"`
}

// NewItem returns the bytes of an item.
func NewItem(data []byte) Item { return Item{string(data), ExactBytes(string(data))} }

// EscapeUnprintable escapes the runes in the strings of a JSON text that a terminal or a browser
// would not show as they are, and that the encoder leaves: those that are no letter, mark, number,
// punctuation, symbol or space.
func EscapeUnprintable(text []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case r == '\n' || r == unicode.ReplacementChar || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// ErrorText is an error's text, or "" for nil.
func ErrorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Joined are values whose JSON is one object with the fields of all of them, in their order. No two
// may have a field of the same name.
type Joined []any

// MarshalJSON returns the object.
func (j Joined) MarshalJSON() ([]byte, error) {
	var fields [][]byte
	for _, object := range j {
		encoded, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		if len(encoded) < 2 || encoded[0] != '{' {
			return nil, errors.New("only objects can be joined")
		}
		if encoded = encoded[1 : len(encoded)-1]; len(encoded) > 0 {
			fields = append(fields, encoded)
		}
	}
	return append(append([]byte("{"), bytes.Join(fields, []byte(","))...), '}'), nil
}
