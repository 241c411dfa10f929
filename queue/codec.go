package queue

import "encoding/json"

// Codec turns values into an item's bytes and back. Several goroutines may call it at once. If
// Encode returns an error or panics, the put fails with ErrCodec. If Decode does, the item becomes
// a dead letter.
type Codec[T any] interface {
	Encode(T) ([]byte, error)
	Decode([]byte) (T, error)
}

// JSON returns the codec of package encoding/json.
func JSON[T any]() Codec[T] { return jsonCodec[T]{} }

type jsonCodec[T any] struct{}

func (jsonCodec[T]) Encode(v T) ([]byte, error) { return json.Marshal(v) }

func (jsonCodec[T]) Decode(data []byte) (v T, err error) {
	err = json.Unmarshal(data, &v)
	return v, err
}

// Bytes returns the codec that stores bytes unchanged.
func Bytes() Codec[[]byte] { return plainCodec[[]byte]{} }

// Text returns the codec of strings, which it stores unchanged. They need not be UTF-8.
func Text() Codec[string] { return plainCodec[string]{} }

type plainCodec[T ~string | ~[]byte] struct{}

func (plainCodec[T]) Encode(v T) ([]byte, error) { return []byte(v), nil }

func (plainCodec[T]) Decode(data []byte) (T, error) { return T(data), nil }
