package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// cell is a text and how it is shown at a terminal.
type cell struct {
	text  string
	paint func(terminal.Style, string) string
}

func plainCell(text string) cell {
	return cell{text, func(_ terminal.Style, t string) string { return t }}
}
func boldCell(text string) cell   { return cell{text, terminal.Style.Bold} }
func dimCell(text string) cell    { return cell{text, terminal.Style.Dim} }
func redCell(text string) cell    { return cell{text, terminal.Style.Red} }
func greenCell(text string) cell  { return cell{text, terminal.Style.Green} }
func yellowCell(text string) cell { return cell{text, terminal.Style.Yellow} }
func cyanCell(text string) cell   { return cell{text, terminal.Style.Cyan} }

// table is lines of cells under a head. Columns without a text in any line are left out.
type table struct {
	title string
	rows  [][]cell // the head first
}

func newTable(head ...string) *table {
	row := make([]cell, len(head))
	for i, h := range head {
		row[i] = dimCell(h)
	}
	return &table{rows: [][]cell{row}}
}

func (t *table) addRow(row ...cell) {
	for i := range row {
		row[i].text = inOneLine(row[i].text)
	}
	t.rows = append(t.rows, row)
}

// printTo writes the table, coloured if w is a terminal; nothing if there is nothing to show.
func (t *table) printTo(w io.Writer) error {
	var b strings.Builder
	for _, line := range t.formatLines(styleFor(w)) {
		b.WriteString(line + "\n")
	}
	_, err := fmt.Fprint(w, b.String())
	return err
}

// styleFor returns the style for what is written to w: colours only if it is a terminal.
func styleFor(w io.Writer) (style terminal.Style) {
	if f, ok := w.(*os.File); ok {
		style = terminal.For(f)
	}
	return style
}

// writeFacts writes one line for each label that has a text.
func writeFacts(b *strings.Builder, style terminal.Style, facts [][2]string) {
	for _, fact := range facts {
		if fact[1] != "" {
			fmt.Fprintf(b, "  %s %s\n", style.Dim(fmt.Sprintf("%-10s", fact[0])), inOneLine(fact[1]))
		}
	}
}

// formatLines returns the title, the head and the rows as lines. Without a row there is no head.
func (t *table) formatLines(style terminal.Style) (lines []string) {
	if t.title != "" {
		lines = append(lines, style.Bold(t.title))
	}
	if len(t.rows) > 1 {
		widths := t.columnWidths()
		for _, row := range t.rows {
			lines = append(lines, formatRow(style, row, widths))
		}
	}
	return lines
}

// minFitted is the smallest width to which fitColumn shortens a column.
const minFitted = 16

// fitColumn shortens the texts of a column in their middles, so that the lines are not wider than
// width, as far as possible.
func (t *table) fitColumn(column, width int) {
	total, widths := 0, t.columnWidths()
	for _, w := range widths {
		if w > 0 {
			total += w + 2
		}
	}
	most := max(minFitted, widths[column]-(total-2-width))
	for _, row := range t.rows[1:] {
		row[column].text = cutMiddle(row[column].text, most)
	}
}

// cutMiddle returns the begin and the end of a text that has more letters than most.
func cutMiddle(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	begin := most / 3
	return string(runes[:begin]) + "…" + string(runes[len(runes)-(most-begin-1):])
}

// columnWidths are the columns' widths; 0 leaves a column out.
func (t *table) columnWidths() []int {
	widths := make([]int, len(t.rows[0]))
	for n := range widths {
		for _, row := range t.rows[1:] {
			widths[n] = max(widths[n], utf8.RuneCountInString(row[n].text))
		}
		if widths[n] > 0 {
			widths[n] = max(widths[n], utf8.RuneCountInString(t.rows[0][n].text))
		}
	}
	return widths
}

// formatRow joins cells with padding. It colours the texts after it has counted their letters.
func formatRow(style terminal.Style, row []cell, widths []int) string {
	var b strings.Builder
	pending := ""
	for n, c := range row {
		if widths[n] == 0 {
			continue
		}
		if c.text != "" {
			b.WriteString(pending + c.paint(style, c.text))
			pending = ""
		}
		pending += strings.Repeat(" ", widths[n]-utf8.RuneCountInString(c.text)+2)
	}
	return b.String()
}
