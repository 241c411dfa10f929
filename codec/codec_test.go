package codec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
)

type mail struct {
	To string `json:"to"`
}

func TestCodecsReturnWhatTheyWereGiven(t *testing.T) {
	data, err := codec.JSON[mail]().Encode(mail{"a@b"})
	require.NoError(t, err)
	require.Equal(t, `{"to":"a@b"}`, string(data))
	m, err := codec.JSON[mail]().Decode([]byte(`{"to":"a@b","added":"by a later release"}`))
	require.NoError(t, err)
	require.Equal(t, mail{"a@b"}, m)
	_, err = codec.JSON[mail]().Decode([]byte("{"))
	require.Error(t, err)

	const notUTF8 = "a\xff"
	data, err = codec.Text().Encode(notUTF8)
	require.NoError(t, err)
	text, err := codec.Text().Decode(data)
	require.NoError(t, err)
	require.Equal(t, notUTF8, text)
}

// TestBytesAreCopied: whoever changes its slice afterwards changes neither what is stored nor what
// others have read.
func TestBytesAreCopied(t *testing.T) {
	value := []byte("abc")
	data, err := codec.Bytes().Encode(value)
	require.NoError(t, err)
	value[0] = 'x'
	require.Equal(t, "abc", string(data))
	read, err := codec.Bytes().Decode(data)
	require.NoError(t, err)
	data[0] = 'x'
	require.Equal(t, "abc", string(read))
}
