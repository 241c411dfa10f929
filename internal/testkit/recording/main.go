// Command recording makes a picture of what a program has printed on a terminal:
//
//	script -q -c PROGRAM -O output -T times
//	go run ./internal/testkit/recording -title '$ PROGRAM' output times > picture.svg
//
// The picture is an SVG that needs nothing else: its text can be selected and searched, it follows
// the light or dark scheme of who looks at it, and shows the last screen where nothing may move. It
// plays once, -speed times as fast as the program ran.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"html"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func main() {
	title := flag.String("title", "", "the command, shown above the screen")
	speed := flag.Float64("speed", 4, "how many times as fast as the program ran")
	flag.Parse()
	if err := run(*title, *speed, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func run(title string, speed float64, files []string) error {
	if len(files) != 2 || !(speed > 0) {
		return errors.New("want the files of script's -O and -T, and a -speed above 0")
	}
	output, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	times, err := os.ReadFile(files[1])
	if err != nil {
		return err
	}
	s, err := play(output, string(times))
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(s.picture(title, speed))
	return err
}

// play shows what script has recorded: the output begins with a line of script's own, and each line
// of times has the seconds since the one before and the number of bytes that came then.
func play(output []byte, times string) (*screen, error) {
	_, output, found := bytes.Cut(output, []byte("\n"))
	if !found {
		return nil, errors.New("the output has no line of script's own")
	}
	s := &screen{}
	for line := range strings.Lines(times) {
		var pause float64
		var count int
		if _, err := fmt.Sscan(line, &pause, &count); err != nil {
			return nil, fmt.Errorf("line of times %q: %w", line, err)
		}
		if count < 0 || count > len(output) {
			return nil, fmt.Errorf("line of times %q: the output has %d bytes left", line, len(output))
		}
		s.now += pause
		if err := s.print(output[:count]); err != nil {
			return nil, err
		}
		output = output[count:]
		if s.left {
			break
		}
		s.keep()
	}
	return s, nil
}

// screen is a terminal, as far as Lockstep's programs use one: lines from the top, colours, and the
// alternate screen, which is drawn anew from its first line. It does not scroll.
type screen struct {
	now    float64 // seconds
	rest   []byte  // the beginning of a character or an escape sequence
	class  string  // of the text that comes next
	row    int
	column int
	cells  [][]cell
	left   bool // the alternate screen was left: what follows is no part of the picture
	shown  []line
	latest map[int]int // by row, the line in shown that is there now
}

type cell struct {
	text  rune
	class string
}

// line is what a row has shown for some time.
type line struct {
	row       int
	markup    string
	from, end float64 // end is 0 for the lines of the last screen
}

// classes are those of the style sheet, by the parameter of the escape sequence.
var classes = map[string]string{"": "", "0": "", "1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "36": "c"}

// print changes the cells. It fails at a sequence that it does not know, rather than draw it
// wrongly.
func (s *screen) print(text []byte) error {
	text = append(s.rest, text...)
	s.rest = nil
	for len(text) > 0 && !s.left {
		if text[0] == 0x1b {
			end := bytes.IndexFunc(text, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' })
			if end < 0 {
				s.rest = bytes.Clone(text)
				return nil
			}
			if err := s.escape(string(text[1 : end+1])); err != nil {
				return err
			}
			text = text[end+1:]
			continue
		}
		if !utf8.FullRune(text) {
			s.rest = bytes.Clone(text)
			return nil
		}
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		switch {
		case r == '\r':
			s.column = 0
		case r == '\n':
			s.row++
		case !unicode.IsPrint(r):
			return fmt.Errorf("unknown character %q", r)
		default:
			s.put(cell{r, s.class})
		}
	}
	return nil
}

func (s *screen) escape(sequence string) error {
	switch parameter := strings.Trim(sequence, "[hlmHJK"); {
	case sequence == "[H":
		s.row, s.column = 0, 0
	case sequence == "[K":
		s.clear(s.row, s.column)
	case sequence == "[J":
		s.clear(s.row, s.column)
		for row := s.row + 1; row < len(s.cells); row++ {
			s.clear(row, 0)
		}
	case sequence == "[?1049l":
		s.left = true
	case strings.HasPrefix(sequence, "[?"): // the cursor, and what happens to long lines
	case strings.HasSuffix(sequence, "m"):
		class, known := classes[parameter]
		if !known {
			return fmt.Errorf("unknown colour %q", sequence)
		}
		s.class = class
	default:
		return fmt.Errorf("unknown escape sequence %q", sequence)
	}
	return nil
}

func (s *screen) put(c cell) {
	for len(s.cells) <= s.row {
		s.cells = append(s.cells, nil)
	}
	for len(s.cells[s.row]) <= s.column { // the beginning of a line may have been left out
		s.cells[s.row] = append(s.cells[s.row], cell{text: ' '})
	}
	s.cells[s.row][s.column] = c
	s.column++
}

func (s *screen) clear(row, column int) {
	if row < len(s.cells) && column < len(s.cells[row]) {
		s.cells[row] = s.cells[row][:column]
	}
}

// keep records which rows have changed since the last call.
func (s *screen) keep() {
	if s.latest == nil {
		s.latest = map[int]int{}
	}
	for row, cells := range s.cells {
		markup := markupOf(cells)
		at, isShown := s.latest[row]
		if isShown && s.shown[at].markup == markup || !isShown && markup == "" {
			continue
		}
		if isShown {
			s.shown[at].end = s.now
		}
		s.latest[row] = len(s.shown)
		s.shown = append(s.shown, line{row: row, markup: markup, from: s.now})
	}
}

// markupOf returns a row with a tspan for each colour.
func markupOf(cells []cell) string {
	for len(cells) > 0 && cells[len(cells)-1].text == ' ' {
		cells = cells[:len(cells)-1]
	}
	var b strings.Builder
	for i := 0; i < len(cells); {
		class := cells[i].class
		var text strings.Builder
		for ; i < len(cells) && cells[i].class == class; i++ {
			text.WriteRune(cells[i].text)
		}
		if escaped := html.EscapeString(text.String()); class == "" {
			b.WriteString(escaped)
		} else {
			fmt.Fprintf(&b, `<tspan class="%s">%s</tspan>`, class, escaped)
		}
	}
	return b.String()
}

const (
	cellWidth, cellHeight, margin = 7.83, 18, 16
	style                         = `
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre;fill:#1f2328}
.p{fill:#f6f8fa;stroke:#d1d9e0}.b{font-weight:700}
.d{fill:#59636e}.r{fill:#c21c2b}.g{fill:#116329}.y{fill:#805500}.c{fill:#0550ae}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.p{fill:#0d1117;stroke:#3d444d}
.d{fill:#9198a1}.r{fill:#ff7b72}.g{fill:#56d364}.y{fill:#e3b341}.c{fill:#79c0ff}}
.a{animation:a 1ms step-end backwards}.o{opacity:0;animation:o 1ms step-end}
@keyframes a{from{opacity:0}to{opacity:1}}@keyframes o{from{opacity:1}to{opacity:1}}
@media(prefers-reduced-motion:reduce){.a,.o{animation:none}}
`
)

// picture returns the SVG. A line of the last screen is hidden until its time has come; another one
// is hidden but for the time that it was shown.
func (s *screen) picture(title string, speed float64) []byte {
	rows, columns := len(s.cells), len([]rune(title))
	for _, cells := range s.cells {
		columns = max(columns, len(cells))
	}
	for rows > 0 && markupOf(s.cells[rows-1]) == "" {
		rows--
	}
	width, height := int(float64(columns)*cellWidth)+2*margin, (rows+2)*cellHeight+2*margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`,
		width, height, width, height)
	fmt.Fprintf(&b, "\n<title>%s</title><style>%s</style>\n", html.EscapeString(title), style)
	fmt.Fprintf(&b, `<rect class="p" x=".5" y=".5" width="%d" height="%d" rx="8"/>`+"\n", width-1, height-1)
	fmt.Fprintf(&b, `<text x="%d" y="%d" class="b" xml:space="preserve">%s</text>`+"\n", margin, margin+cellHeight-5,
		html.EscapeString(title))
	for _, l := range s.shown {
		if l.markup == "" {
			continue
		}
		class, length := "a", ""
		if l.end > 0 {
			class = "o"
			length = ";animation-duration:" + seconds((l.end-l.from)/speed)
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" class="%s" style="animation-delay:%s%s" xml:space="preserve">`,
			margin, margin+(l.row+3)*cellHeight-5, class, seconds(l.from/speed), length)
		b.WriteString(l.markup + "</text>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 2, 64) + "s" }
