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

// Screen shows full-screen frames, and reads keys one by one. Close restores the terminal.
type Screen struct {
	in, out     *os.File
	before      *term.State // the terminal's state to restore; nil while it is restored
	signals     <-chan os.Signal
	stopSignals func()
	read        chan string
}

const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // the alternate screen, no cursor, long lines are cut off
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	// escapeTime is how long Run waits for the rest of a sequence after an escape character. After
	// that the character is the escape key.
	escapeTime = 50 * time.Millisecond
)

// IsInteractive reports whether in and out are a terminal on which a Screen works.
func IsInteractive(in, out *os.File) bool {
	return term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb"
}

// OpenScreen switches a terminal to full-screen frames and single keys. The caller must Close the
// Screen, also when it panics.
func OpenScreen(in, out *os.File) (*Screen, error) {
	s := &Screen{in: in, out: out, read: make(chan string)}
	if err := s.enter(); err != nil {
		return nil, err
	}
	s.signals, s.stopSignals = screenSignals()
	go s.readInput()
	return s, nil
}

// enter switches the terminal to the alternate screen and to raw mode, in which it sends each key
// at once. After an error the terminal is as before.
func (s *Screen) enter() error {
	before, err := term.MakeRaw(int(s.in.Fd()))
	if err != nil {
		return fmt.Errorf("switch the terminal to raw mode: %w", err)
	}
	if s.before == nil { // otherwise the Screen has already switched the terminal
		s.before = before
	}
	if _, err = io.WriteString(s.out, enterScreen); err != nil {
		_ = s.restore() // the first error is the cause
	}
	return err
}

// restore undoes enter. A second call does nothing.
func (s *Screen) restore() error {
	if s.before == nil {
		return nil
	}
	_, err := io.WriteString(s.out, leaveScreen)
	err = errors.Join(err, term.Restore(int(s.in.Fd()), s.before))
	s.before = nil
	return err
}

// Close restores the terminal. The goroutine that reads keys may go on until the program ends.
func (s *Screen) Close() error {
	s.stopSignals()
	return s.restore()
}

// Size is the terminal's width and height, at least 1.
func (s *Screen) Size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil {
		return 80, 24
	}
	return max(1, width), max(1, height)
}

// Draw shows lines at the top of the screen, and clears the rest.
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

// readInput sends what the terminal sends to s.read, until the terminal is closed.
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

// Run calls press for each key, and each function that it receives from updates. It calls draw
// first, after each of these calls, and when the size of the terminal has changed. It returns when
// press returns false, when ctx ends, when the terminal is closed, or with the first error. Ctrl-Z
// stops the program until the shell continues it. If the program is continued after any stop, Run
// switches the terminal again, and draws.
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
			if rest[0] == 0x1b { // otherwise it is the beginning of a character
				keys = append(keys, KeyEscape)
			}
			rest = ""
		case sig := <-s.signals:
			switch {
			case isSuspension(sig):
				keys = append(keys, KeySuspend)
			case isContinuation(sig): // after a stop from outside the shell has reset the terminal
				if err := s.enter(); err != nil {
					return err
				}
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

// suspend restores the terminal and stops the program. When the program is continued, it switches
// the terminal again.
func (s *Screen) suspend() error {
	if err := s.restore(); err != nil {
		return err
	}
	if err := stopProcess(); err != nil {
		return err
	}
	return s.enter()
}
