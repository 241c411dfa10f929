package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServerReturnsStringsAsJavaDoes(t *testing.T) {
	for sent, want := range map[string]string{
		"":                   "",
		"/plain":             "/plain",
		"/\u00e4\uffef":      "/\u00e4\uffef",
		"\U00010000":         "\xed\xa0\x80\xed\xb0\x80",
		"a\U0001f600b":       "a\xed\xa0\xbd\xed\xb8\x80b",
		"\U0010ffff":         "\xed\xaf\xbf\xed\xbf\xbf",
		"a\xffb":             "a\ufffdb",
		"\xc0\xaf\u00e4\xc3": "\ufffd\ufffd\u00e4\ufffd",
	} {
		var e Encoder
		e.String(sent)
		e.Strings([]string{sent})
		e.ACLs([]ACL{{Perms: 1, Scheme: "digest", ID: sent}})
		d := NewServerDecoder(e.Bytes())
		require.Equal(t, want, d.Path(), "%q", sent)
		require.Equal(t, []string{want}, d.Strings(), "%q", sent)
		require.Equal(t, want, d.ACLs()[0].ID, "%q", sent)

		d = NewDecoder(e.Bytes())
		require.Equal(t, sent, d.String(), "a client's decoder does not change strings")
	}
}

func TestDecoderRefusesNullPathsWhenTold(t *testing.T) {
	for name, c := range map[string]struct {
		length  int32
		read    func(*Decoder)
		refused bool
	}{
		"a null path":   {-1, func(d *Decoder) { require.Empty(t, d.Path()) }, true},
		"a null string": {-1, func(d *Decoder) { require.Empty(t, d.String()) }, false},
		"an empty path": {0, func(d *Decoder) { require.Empty(t, d.Path()) }, false},
	} {
		var e Encoder
		e.Int(c.length)
		d := NewServerDecoder(e.Bytes())
		c.read(&d)
		require.NoError(t, d.Err(), name)

		d = NewServerDecoder(e.Bytes())
		d.RefuseNullPaths()
		c.read(&d)
		require.Equal(t, c.refused, d.Err() != nil, name)
	}
}

// FuzzServerString decodes any string as the server does. The result has no character beyond the
// basic plane, and is a valid path if the string is one.
func FuzzServerString(f *testing.F) {
	f.Add("/a")
	f.Add("\U0001f600\xff")
	f.Fuzz(func(t *testing.T, sent string) {
		var e Encoder
		e.String(sent)
		d := NewServerDecoder(e.Bytes())
		got := d.String()
		require.NoError(t, d.Err())
		require.LessOrEqual(t, len(got), 3*len(sent))
		require.Equal(t, -1, strings.IndexFunc(got, func(r rune) bool { return r > 0xffff }))
		require.Equal(t, ValidatePath(sent) == nil, ValidatePath(got) == nil, "valid before and after, or invalid")
	})
}
