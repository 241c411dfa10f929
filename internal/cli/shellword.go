package cli

import (
	"strings"
)

// isShellWord reports whether a shell takes a text for a word, as it is, and lockstep takes the
// word for no flag.
func isShellWord(text string) bool {
	return text != "" && text[0] != '-' && strings.Trim(text, shellWordLetters) == ""
}

const shellWordLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/:@+,-"

// ShellWord quotes a text for a shell, for a command that is shown to be copied.
func ShellWord(text string) string {
	if isShellWord(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
