package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// Cell is a text and how it is shown at a terminal.
type Cell struct {
	Text  string
	Paint func(terminal.Style, string) string
}

func PlainCell(text string) Cell {
	return Cell{text, func(_ terminal.Style, t string) string { return t }}
}

func BoldCell(text string) Cell { return Cell{text, terminal.Style.Bold} }

func DimCell(text string) Cell { return Cell{text, terminal.Style.Dim} }

func RedCell(text string) Cell { return Cell{text, terminal.Style.Red} }

func GreenCell(text string) Cell { return Cell{text, terminal.Style.Green} }

func YellowCell(text string) Cell { return Cell{text, terminal.Style.Yellow} }

func CyanCell(text string) Cell { return Cell{text, terminal.Style.Cyan} }

// Table is lines of cells under a head. Columns without a text in any line are left out.
type Table struct {
	Title string
	Rows  [][]Cell // the head first
}

func NewTable(head ...string) *Table {
	row := make([]Cell, len(head))
	for i, h := range head {
		row[i] = DimCell(h)
	}
	return &Table{Rows: [][]Cell{row}}
}

func (t *Table) AddRow(row ...Cell) {
	for i := range row {
		row[i].Text = InOneLine(row[i].Text)
	}
	t.Rows = append(t.Rows, row)
}

// PrintTo writes the table, nothing if there is nothing to show. On a terminal it is coloured, and
// a row that is wider than the terminal goes on in the next line, with its next column.
func (t *Table) PrintTo(w io.Writer) error {
	width := 0
	if f, ok := w.(*os.File); ok {
		width = terminal.Width(f)
	}
	var b strings.Builder
	for _, line := range t.formatWithin(StyleFor(w), width) {
		b.WriteString(line + "\n")
	}
	_, err := fmt.Fprint(w, b.String())
	return err
}

// StyleFor returns the style for what is written to w: colours only if it is a terminal.
func StyleFor(w io.Writer) (style terminal.Style) {
	if f, ok := w.(*os.File); ok {
		style = terminal.For(f)
	}
	return style
}

// WriteFacts writes one line for each label that has a text.
func WriteFacts(b *strings.Builder, style terminal.Style, facts [][2]string) {
	for _, fact := range facts {
		if fact[1] != "" {
			fmt.Fprintf(b, "  %s %s\n", style.Dim(fmt.Sprintf("%-10s", fact[0])), InOneLine(fact[1]))
		}
	}
}

// FormatLines returns the title, the head and the rows as lines. Without a row there is no head.
func (t *Table) FormatLines(style terminal.Style) (lines []string) { return t.formatWithin(style, 0) }

// formatWithin is FormatLines for a terminal of this width, or of any width if it is 0.
func (t *Table) formatWithin(style terminal.Style, width int) (lines []string) {
	if t.Title != "" {
		lines = append(lines, style.Bold(t.Title))
	}
	if len(t.Rows) > 1 {
		parts := breakColumns(t.columnWidths(), width)
		for _, row := range t.Rows {
			for i, part := range parts {
				switch line := formatRow(style, row, part); {
				case i == 0:
					lines = append(lines, line)
				case line != "":
					lines = append(lines, strings.Repeat(" ", continued)+line)
				}
			}
		}
	}
	return lines
}

// continued is the indentation of the lines in which a row goes on.
const continued = 4

// breakColumns returns the columns' widths for each line of a row: those of the columns in other
// lines are 0. A column that is wider than the terminal has a line of its own.
func breakColumns(widths []int, most int) (lines [][]int) {
	line, used := make([]int, len(widths)), 0
	for n, w := range widths {
		if w == 0 {
			continue
		}
		if used > 0 && most > 0 && used+w > most {
			lines, line, used = append(lines, line), make([]int, len(widths)), continued
		}
		line[n] = w
		used += w + 2
	}
	return append(lines, line)
}

// minFitted is the smallest width to which fitColumn shortens a column.
const minFitted = 16

// FitColumn shortens the texts of a column in their middles, so that the lines are not wider than
// width, as far as possible.
func (t *Table) FitColumn(column, width int) {
	total, widths := 0, t.columnWidths()
	for _, w := range widths {
		if w > 0 {
			total += w + 2
		}
	}
	most := max(minFitted, widths[column]-(total-2-width))
	for _, row := range t.Rows[1:] {
		row[column].Text = CutMiddle(row[column].Text, most)
	}
}

// CutMiddle returns the begin and the end of a text that has more letters than most.
func CutMiddle(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	begin := most / 3
	return string(runes[:begin]) + "…" + string(runes[len(runes)-(most-begin-1):])
}

// columnWidths are the columns' widths; 0 leaves a column out.
func (t *Table) columnWidths() []int {
	widths := make([]int, len(t.Rows[0]))
	for n := range widths {
		for _, row := range t.Rows[1:] {
			widths[n] = max(widths[n], utf8.RuneCountInString(row[n].Text))
		}
		if widths[n] > 0 {
			widths[n] = max(widths[n], utf8.RuneCountInString(t.Rows[0][n].Text))
		}
	}
	return widths
}

// formatRow joins cells with padding. It colours the texts after it has counted their letters.
func formatRow(style terminal.Style, row []Cell, widths []int) string {
	var b strings.Builder
	pending := ""
	for n, c := range row {
		if widths[n] == 0 {
			continue
		}
		if c.Text != "" {
			b.WriteString(pending + c.Paint(style, c.Text))
			pending = ""
		}
		pending += strings.Repeat(" ", widths[n]-utf8.RuneCountInString(c.Text)+2)
	}
	return b.String()
}
