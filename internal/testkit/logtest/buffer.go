// Package logtest keeps what programs and clients write while a test reads it.
package logtest

import (
	"bytes"
	"sync"
)

// Buffer is a buffer that may be read while others write to it. The zero value is empty.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns all that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
