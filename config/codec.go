package config

import (
	"bytes"
	"encoding/json"
)

// Codec turns values into a node's bytes and back. Several goroutines may call its functions at
// once. All readers share a value that Decode has returned.
type Codec[T any] struct {
	Encode func(T) ([]byte, error)
	Decode func([]byte) (T, error)
}

// JSON returns the codec of package encoding/json. It ignores fields that T does not have, so that
// programs of two releases can share a value.
func JSON[T any]() Codec[T] {
	return Codec[T]{
		Encode: func(v T) ([]byte, error) { return json.Marshal(v) },
		Decode: func(data []byte) (v T, err error) { return v, json.Unmarshal(data, &v) },
	}
}

// Text returns the codec of a text that is the node's bytes.
func Text() Codec[string] {
	return Codec[string]{
		Encode: func(v string) ([]byte, error) { return []byte(v), nil },
		Decode: func(data []byte) (string, error) { return string(data), nil },
	}
}

// Bytes returns the codec that leaves the node's bytes unchanged. Do not modify a value that was
// read: all readers share it.
func Bytes() Codec[[]byte] {
	return Codec[[]byte]{
		Encode: func(v []byte) ([]byte, error) { return bytes.Clone(v), nil },
		Decode: func(data []byte) ([]byte, error) { return data, nil },
	}
}
