package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const header = "Script started\n"

// recorded plays parts that came a second apart.
func recorded(t *testing.T, parts ...string) *screen {
	t.Helper()
	var times strings.Builder
	for _, part := range parts {
		fmt.Fprintf(&times, "1.0 %d\n", len(part))
	}
	s, err := play([]byte(header+strings.Join(parts, "")), times.String())
	require.NoError(t, err)
	return s
}

func TestLinesAppearWhenTheyWerePrinted(t *testing.T) {
	s := recorded(t, "\x1b[31mred\x1b[0m <b>", "\r\nl\xc3", "\xa4ter\r\n\x1b[", "1mend")
	require.Equal(t, []line{
		{row: 0, markup: `<tspan class="r">red</tspan> &lt;b&gt;`, from: 1},
		{row: 1, markup: "l", from: 2, end: 3},
		{row: 1, markup: "läter", from: 3},
		{row: 2, markup: `<tspan class="b">end</tspan>`, from: 4},
	}, s.shown)
	picture := s.picture("$ true & false", 2)
	requireXML(t, picture)
	require.Contains(t, string(picture), "$ true &amp; false")
	require.Contains(t, string(picture), `class="a" style="animation-delay:1.50s" xml:space="preserve">läter<`)
	require.Contains(t, string(picture),
		`class="o" style="animation-delay:1.00s;animation-duration:0.50s" xml:space="preserve">l<`)
}

func TestAScreenThatIsDrawnAnew(t *testing.T) {
	s := recorded(t, "\x1b[?1049h\x1b[?25l\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J", "\x1b[Hone\x1b[K\x1b[J",
		"\x1b[?25h\x1b[?1049lafter")
	require.Equal(t, []line{{row: 0, markup: "one", from: 1}, {row: 1, markup: "two", from: 1, end: 2},
		{row: 1, from: 2}}, s.shown)
	requireXML(t, s.picture("", 1))
}

func TestWhatCannotBeDrawnIsAnError(t *testing.T) {
	for output, want := range map[string]string{
		header + "\x1b[5A": `unknown escape sequence "[5A"`, header + "\x1b[95m": `unknown colour "[95m"`,
		header + "a\tbb": `unknown character '\t'`, header + "a": "the output has 1 bytes left",
		"": "no line of script's own",
	} {
		_, err := play([]byte(output), "0.1 4\n0.1 1\n")
		require.ErrorContains(t, err, want)
	}
	_, err := play([]byte(header), "one\n")
	require.ErrorContains(t, err, `line of times "one\n"`)
}

func requireXML(t *testing.T, text []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else {
			require.NoError(t, err, string(text))
		}
	}
}

func FuzzPlay(f *testing.F) {
	f.Add([]byte(header+"\x1b[31mred\x1b[0m\r\n"), "0.1 14\n")
	f.Fuzz(func(t *testing.T, output []byte, times string) {
		if s, err := play(output, times); err == nil {
			requireXML(t, s.picture("", 4))
		}
	})
}
