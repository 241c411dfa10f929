package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// maxValue is more than a node can have.
const maxValue = 1 << 20

// ReadFileOrInput reads a file, or standard input if it is called -. It ends with ctx, also while
// standard input is open and silent.
func ReadFileOrInput(ctx context.Context, streams *Streams, file string) ([]byte, error) {
	in, name := streams.In, "standard input"
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, UsageError("--file: %w", err)
		}
		defer opened.Close()
		in, name = opened, file
	}
	type result struct {
		data []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(in, maxValue+1))
		read <- result{data, err}
	}()
	select {
	case r := <-read:
		if r.err == nil && len(r.data) > maxValue {
			r.err = UsageError("%s has more than %d bytes: a node cannot have so many", name, maxValue)
		}
		return r.data, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// JsonInput is JSON from an argument, a file or standard input.
type JsonInput struct{ file string }

func (in *JsonInput) AddInputFlag(cmd *cobra.Command, what string) {
	cmd.Flags().StringVarP(&in.file, "file", "f", "",
		"read the "+what+" from this file, or from standard input if it is -")
	OfferFiles(cmd, "file")
}

// Read returns the JSON, null if none is given. It ends with ctx, also while standard input is open
// and silent.
func (in *JsonInput) Read(ctx context.Context, streams *Streams, args []string) (json.RawMessage, error) {
	text, file := []byte("null"), in.file
	switch {
	case len(args) > 0 && file != "":
		return nil, UsageError("JSON is given as an argument and with --file: give one of them")
	case len(args) > 0 && args[0] == "-":
		file = "-"
	case len(args) > 0:
		text = []byte(args[0])
	}
	if file != "" {
		var err error
		if text, err = ReadFileOrInput(ctx, streams, file); err != nil {
			return nil, err
		}
	}
	var value json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(&value)
	if err == nil {
		if _, more := decoder.Token(); more != io.EOF {
			err = errors.New("more follows after the first value")
		}
	}
	if err != nil {
		return nil, UsageError("%s is not JSON: %w; write a text as '\"text\"'", ShortenText(string(text)), err)
	}
	return value, nil
}

// Confirm asks at a terminal. Elsewhere it refuses.
func Confirm(ctx context.Context, streams *Streams, question string) error {
	if !terminal.Is(streams.In) {
		return UsageError("standard input is no terminal, so lockstep cannot ask: give -y if you are sure")
	}
	fmt.Fprintf(streams.Err, "%s [y/N] ", InOneLine(question))
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(streams.In).ReadString('\n') // an end without an answer is a no
		answered <- line
	}()
	select {
	case line := <-answered:
		if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
			return &ExitError{Code: ExitNotObtained, Reason: errors.New("nothing was done")}
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
