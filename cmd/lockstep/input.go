package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// maxValue is more than a node can have.
const maxValue = 1 << 20

// readFileOrInput reads a file, or standard input if it is called -. It ends with ctx, also while
// standard input is open and silent.
func readFileOrInput(ctx context.Context, streams *Streams, file string) ([]byte, error) {
	in, name := streams.In, "standard input"
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, usageError("--file: %w", err)
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
			r.err = usageError("%s has more than %d bytes: a node cannot have so many", name, maxValue)
		}
		return r.data, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// jsonInput is JSON from an argument, a file or standard input.
type jsonInput struct{ file string }

func (in *jsonInput) addInputFlag(cmd *cobra.Command, what string) {
	cmd.Flags().StringVarP(&in.file, "file", "f", "",
		"read the "+what+" from this file, or from standard input if it is -")
	offerFiles(cmd, "file")
}

// read returns the JSON, null if none is given. It ends with ctx, also while standard input is open
// and silent.
func (in *jsonInput) read(ctx context.Context, streams *Streams, args []string) (json.RawMessage, error) {
	text, file := []byte("null"), in.file
	switch {
	case len(args) > 0 && file != "":
		return nil, usageError("JSON is given as an argument and with --file: give one of them")
	case len(args) > 0 && args[0] == "-":
		file = "-"
	case len(args) > 0:
		text = []byte(args[0])
	}
	if file != "" {
		var err error
		if text, err = readFileOrInput(ctx, streams, file); err != nil {
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
		return nil, usageError("%s is not JSON: %w; write a text as '\"text\"'", shortenText(string(text)), err)
	}
	return value, nil
}
