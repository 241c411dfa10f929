package top

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/terminal"
)

// showTopLive shows frames until the user or a signal ends it.
func showTopLive(ctx context.Context, streams *cli.Streams, model *topModel, reader *topReader,
	interval time.Duration) error {
	screen, err := terminal.OpenScreen(streams.In, streams.Out)
	if err != nil {
		return err
	}
	defer screen.Close() //nolint:errcheck // there is no other place for the error
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	scanner := &topScanner{model: model, reader: reader, interval: interval, updates: make(chan func()),
		wished: make(chan struct{}, 1)}
	go func() {
		defer func() { // the terminal is given back before the program ends
			if p := recover(); p != nil {
				cancel(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		cancel(scanner.keepScanning(ctx))
	}()
	go scanner.tick(ctx)
	return screen.Run(ctx, scanner.updates, scanner.press, func() error {
		width, height := screen.Size()
		return screen.Draw(model.frame(width, height, time.Now(), outageOf(reader.client.Status())))
	})
}

// topScanner scans what the model wishes to show. The model belongs to the goroutine that draws:
// it is used in updates only.
type topScanner struct {
	model    *topModel
	reader   *topReader
	interval time.Duration
	updates  chan func()
	wished   chan struct{} // gets a value when the model wishes to show something else
}

// press passes a key on to the model.
func (l *topScanner) press(key terminal.Key) bool {
	before := l.model.wish()
	goesOn := l.model.press(key)
	if after := l.model.wish(); before != after {
		select {
		case l.wished <- struct{}{}:
		default:
		}
	}
	return goesOn
}

// update has the drawing goroutine call a function, which may use the model, and waits for it. It
// returns false if ctx has ended.
func (l *topScanner) update(ctx context.Context, f func()) bool {
	done := make(chan struct{})
	select {
	case l.updates <- func() { f(); close(done) }:
		<-done
		return true
	case <-ctx.Done():
		return false
	}
}

// tick has the frame drawn again each second: ages and the state of the connection change.
func (l *topScanner) tick(ctx context.Context) {
	for l.update(ctx, func() {}) && pauseFor(ctx, time.Second) == nil {
	}
}

// keepScanning scans again and again, at once when the wish changes.
func (l *topScanner) keepScanning(ctx context.Context) error {
	for {
		var wish topWish
		if !l.update(ctx, func() { wish = l.model.wish() }) {
			return nil
		}
		sent := l.reader.client.Status().Requests
		if !wish.paused {
			early, err := l.scanOnce(ctx, wish)
			if err != nil {
				return err
			}
			if early {
				continue
			}
		}
		// At most half of the time goes into requests. Time without a server does not count, so
		// that the first scan after it is followed soon.
		timer := time.NewTimer(max(l.interval, timeFor(l.reader.client.Status().Requests-sent)))
		select {
		case <-timer.C:
		case <-l.wished:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// scanOnce scans, and shows what was found. It ends early when something else is wished for.
func (l *topScanner) scanOnce(ctx context.Context, wish topWish) (early bool, err error) {
	scanning, stop := context.WithCancel(ctx)
	defer stop()
	changed := make(chan bool, 1)
	go func() {
		select {
		case <-l.wished:
			stop()
			changed <- true
		case <-scanning.Done():
			changed <- false
		}
	}()
	found, err := l.reader.scanList(scanning, wish.view, wish.root, wish.opened)
	stop()
	if early = <-changed; early || ctx.Err() != nil {
		return early, nil
	}
	if err == nil {
		l.update(ctx, func() { l.model.addScan(found) })
	}
	return false, err
}

// outageOf returns a text that no server can be used, with the causes, or "".
func outageOf(st framework.Status) string {
	if st.State == framework.Connected {
		return ""
	}
	var failed []string
	for _, s := range st.Servers {
		if s.Err != nil {
			failed = append(failed, s.Error())
		}
	}
	text := "no server can be reached; the list is not up to date" // first, since a narrow terminal cuts the end off
	switch {
	case len(failed) > 0:
		text += ": " + strings.Join(failed, "; ")
	case st.Cause != nil && !errors.Is(st.Cause, framework.ErrClosed):
		text += ": " + st.Cause.Error()
	}
	return cli.InOneLine(text)
}
