package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Key is a key that was pressed: one of the names below, or the text of a printable character.
type Key string

// The keys without a printable character.
const (
	KeyUp, KeyDown, KeyLeft, KeyRight Key = "up", "down", "left", "right"
	KeyPageUp, KeyPageDown            Key = "page up", "page down"
	KeyHome, KeyEnd                   Key = "home", "end"
	KeyEnter, KeyEscape, KeyTab       Key = "enter", "escape", "tab"
	KeyBackTab, KeyBackspace          Key = "back tab", "backspace"
	KeyInterrupt, KeySuspend          Key = "interrupt", "suspend" // Ctrl-C and Ctrl-Z
	KeyRedraw                         Key = "redraw"               // Ctrl-L
)

// controlKeys are the keys that the terminal sends as a single control byte.
var controlKeys = map[byte]Key{
	'\r': KeyEnter, '\n': KeyEnter, '\t': KeyTab, 0x7f: KeyBackspace, 0x08: KeyBackspace, 0x03: KeyInterrupt,
	0x1a: KeySuspend, 0x0c: KeyRedraw,
}

// sequenceKeys are the keys that the terminal sends as a sequence, by the part of the sequence
// after the escape character.
var sequenceKeys = map[string]Key{
	"[A": KeyUp, "[B": KeyDown, "[C": KeyRight, "[D": KeyLeft, "OA": KeyUp, "OB": KeyDown, "OC": KeyRight,
	"OD": KeyLeft,
	"[H": KeyHome, "[F": KeyEnd, "OH": KeyHome, "OF": KeyEnd, "[1~": KeyHome, "[7~": KeyHome, "[4~": KeyEnd,
	"[8~": KeyEnd,
	"[5~": KeyPageUp, "[6~": KeyPageDown, "[Z": KeyBackTab,
}

// parseKeys returns the keys in what was read, and the rest, which may be the beginning of a key.
// It ignores unknown sequences.
func parseKeys(read string) (keys []Key, rest string) {
	for read != "" {
		switch first := read[0]; {
		case first == 0x1b:
			sequence, whole := cutSequence(read[1:])
			if !whole {
				return keys, read
			}
			if key, ok := sequenceKeys[sequence]; ok {
				keys = append(keys, key)
			}
			read = read[1+len(sequence):]
		case controlKeys[first] != "":
			keys = append(keys, controlKeys[first])
			read = read[1:]
		case !utf8.FullRuneInString(read):
			return keys, read
		default:
			r, size := utf8.DecodeRuneInString(read)
			if r != utf8.RuneError && unicode.IsPrint(r) {
				keys = append(keys, Key(read[:size]))
			}
			read = read[size:]
		}
	}
	return keys, ""
}

// cutSequence returns the sequence at the beginning of the text after an escape character. whole is
// false if more bytes of the sequence may follow.
func cutSequence(after string) (sequence string, whole bool) {
	switch {
	case after == "":
		return "", false
	case after[0] == 0x1b: // the escape key, twice
		return "", true
	case after[0] == 'O':
		return after[:min(2, len(after))], len(after) >= 2
	case after[0] != '[':
		return after[:1], true // Alt and a key
	}
	end := strings.IndexFunc(after[1:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
	if end < 0 {
		return after, len(after) > 32 // no terminal sends a sequence of this length
	}
	return after[:end+2], true
}
