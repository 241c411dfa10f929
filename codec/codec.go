// Package codec has the codecs of values that recipes store in nodes: of a queue's items and of
// configuration values.
package codec

import (
	"bytes"
	"encoding/json"
)

// Codec turns values into bytes and back. Several goroutines may call it at once. A recipe treats a
// panic of a codec as an error of it.
type Codec[T any] interface {
	Encode(T) ([]byte, error)
	// Decode must not keep data. All readers of one node may share the value that it returns.
	Decode(data []byte) (T, error)
}

// JSON returns the codec of package encoding/json. It ignores fields that T does not have, so that
// programs of two releases can share a value.
func JSON[T any]() Codec[T] { return jsonCodec[T]{} }

// Text returns the codec of strings, which it stores unchanged. They need not be UTF-8.
func Text() Codec[string] { return textCodec{} }

// Bytes returns the codec that stores bytes unchanged. Do not modify bytes that were read: other
// readers may share them.
func Bytes() Codec[[]byte] { return bytesCodec{} }

type jsonCodec[T any] struct{}

func (jsonCodec[T]) Encode(v T) ([]byte, error) { return json.Marshal(v) }

func (jsonCodec[T]) Decode(data []byte) (v T, err error) {
	err = json.Unmarshal(data, &v)
	return v, err
}

type textCodec struct{}

func (textCodec) Encode(v string) ([]byte, error) { return []byte(v), nil }

func (textCodec) Decode(data []byte) (string, error) { return string(data), nil }

type bytesCodec struct{}

func (bytesCodec) Encode(v []byte) ([]byte, error) { return bytes.Clone(v), nil }

func (bytesCodec) Decode(data []byte) ([]byte, error) { return bytes.Clone(data), nil }
