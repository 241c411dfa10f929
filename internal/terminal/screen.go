package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// Screen shows frames in place of what the terminal showed before, and reads keys one by one. Close gives the terminal back as it was.
type Screen struct {
	in, out *os.File
	before  *term.State // nil: it was given back
	signals <-chan os.Signal
	ignore  func()
	read    chan string
}

const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // the other screen, without cursor, long lines cut
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	// escapeTime is how long the rest of a sequence may take after its escape character, before that is the key of this name.
	escapeTime = 50 * time.Millisecond
)

// IsInteractive reports whether a person sees out and can press keys at in.
func IsInteractive(in, out *os.File) bool {
	return term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb"
}

// OpenScreen takes a terminal over. The caller must Close it, also when it panics.
func OpenScreen(in, out *os.File) (*Screen, error) {
	s := &Screen{in: in, out: out, read: make(chan string)}
	if err := s.take(); err != nil {
		return nil, err
	}
	s.signals, s.ignore = screenSignals()
	go s.readInput()
	return s, nil
}

// take switches to the other screen, and has keys come one by one.
func (s *Screen) take() error {
	before, err := term.MakeRaw(int(s.in.Fd()))
	if err != nil {
		return fmt.Errorf("the terminal cannot be taken over: %w", err)
	}
	s.before = before
	_, err = io.WriteString(s.out, enterScreen)
	return err
}

// giveBack makes the terminal what it was. It may be called twice.
func (s *Screen) giveBack() error {
	if s.before == nil {
		return nil
	}
	_, err := io.WriteString(s.out, leaveScreen)
	err = errors.Join(err, term.Restore(int(s.in.Fd()), s.before))
	s.before = nil
	return err
}

// Close gives the terminal back. A read of the next key may go on until the program ends.
func (s *Screen) Close() error {
	s.ignore()
	return s.giveBack()
}

// Size is the terminal's width and height, at least 1.
func (s *Screen) Size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil {
		return 80, 24
	}
	return max(1, width), max(1, height)
}

// Draw shows lines from the top of the screen on, and nothing below them.
func (s *Screen) Draw(lines []string) error {
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	_, err := io.WriteString(s.out, b.String())
	return err
}

// readInput reads what is typed.
func (s *Screen) readInput() {
	defer close(s.read)
	buffer := make([]byte, 256)
	for {
		n, err := s.in.Read(buffer)
		if n > 0 {
			s.read <- string(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// Run calls press for each key, and the functions that come by updates. It calls draw at first, after these, and when the size of the terminal has
// changed. It ends when press returns false, when ctx ends, when the terminal is gone, or with the first error. Ctrl-Z stops the program until its
// shell goes on with it.
func (s *Screen) Run(ctx context.Context, updates <-chan func(), press func(Key) bool, draw func() error) error {
	rest := ""
	for {
		if err := draw(); err != nil {
			return err
		}
		var escape <-chan time.Time
		if rest != "" {
			escape = time.After(escapeTime)
		}
		var keys []Key
		select {
		case text, ok := <-s.read:
			if !ok {
				return nil
			}
			keys, rest = parseKeys(rest + text)
		case <-escape:
			if rest[0] == 0x1b { // otherwise it is part of a character
				keys = append(keys, KeyEscape)
			}
			rest = ""
		case sig := <-s.signals:
			if isSuspension(sig) {
				keys = append(keys, KeySuspend)
			}
		case update := <-updates:
			update()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for _, key := range keys {
			if key == KeySuspend {
				if err := s.suspend(); err != nil {
					return err
				}
				continue
			}
			if !press(key) {
				return nil
			}
		}
	}
}

// suspend gives the terminal back, stops the program, and takes the terminal over again when the program goes on.
func (s *Screen) suspend() error {
	if err := s.giveBack(); err != nil {
		return err
	}
	if err := stopProcess(); err != nil {
		return err
	}
	return s.take()
}
