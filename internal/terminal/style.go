package terminal

import (
	"os"

	"golang.org/x/term"
)

// Style colours text, or leaves it as it is. The zero value is plain.
type Style struct{ colour bool }

// For returns the style for output to f. It is coloured if f is a terminal that can show colours
// and the user has not set NO_COLOR (no-color.org). Otherwise it is plain.
func For(f *os.File) Style {
	term := os.Getenv("TERM")
	return Style{isTerminal(f) && os.Getenv("NO_COLOR") == "" && term != "" && term != "dumb"}
}

// Bold returns text in bold.
func (s Style) Bold(text string) string { return s.colorText("1", text) }

// Dim returns text in a fainter colour.
func (s Style) Dim(text string) string { return s.colorText("2", text) }

// Red returns text in red.
func (s Style) Red(text string) string { return s.colorText("31", text) }

// Green returns text in green.
func (s Style) Green(text string) string { return s.colorText("32", text) }

// Yellow returns text in yellow.
func (s Style) Yellow(text string) string { return s.colorText("33", text) }

// Cyan returns text in cyan.
func (s Style) Cyan(text string) string { return s.colorText("36", text) }

func (s Style) colorText(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Width is how many columns a terminal has, or 0 if f is none.
func Width(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Is reports whether f is a terminal.
func Is(f *os.File) bool { return isTerminal(f) }
