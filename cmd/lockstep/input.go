package main

import (
	"context"
	"io"
	"os"
)

// maxValue is more than a node can have.
const maxValue = 1 << 20

// readFileOrInput reads a file, or standard input if it is called -. It ends with ctx, also while standard input is open and silent.
func readFileOrInput(ctx context.Context, file string) ([]byte, error) {
	in, name := os.Stdin, "standard input"
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
