package watchdog

import (
	"crypto/tls"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var messages = []message{
	Access{Servers: []string{"a:1", "b:2"}, DialTimeout: time.Second},
	Access{
		Servers: []string{"a:1"}, Auth: []Credential{{"digest", []byte("user:secret")}, {"x", nil}},
		TLS: &TLS{
			ServerName: "n", SkipVerify: true, MinVersion: 0x303, MaxVersion: 0x304, CipherSuites: []uint16{1, 2},
			OwnRoots: true,
			Curves:   []tls.CurveID{tls.X25519}, Protocols: []string{"p"}, Renegotiation: tls.RenegotiateOnceAsClient,
			ClientHelloConfigs: []byte{6},
			Roots:              [][]byte{{1}, {2, 3}},
			Certificates:       []KeyPair{{Chain: [][]byte{{4}}, Key: []byte{5}, Algorithms: []tls.SignatureScheme{7}}},
		},
	},
	Session{Epoch: 2, ID: -3, Password: []byte("sixteen bytes ok"), Timeout: 30 * time.Second, Server: "a:1"},
	leaseExtended{4, time.Hour}, leaseShortened{4, time.Minute}, commandBegins{5, 6},
	commandStarted{7, processIdentity{8, 9}}, commandEnded{10}, parentCloses{},
}

func TestMessagesRoundTrip(t *testing.T) {
	for _, m := range messages {
		b := encodeFrame(m)
		got, err := decodeMessage(b[4:])
		require.NoError(t, err)
		require.Equal(t, encodeFrame(m), encodeFrame(got), "%T", m)
		require.IsType(t, m, got)
		for n := range b[4:] {
			_, err := decodeMessage(b[4 : 4+n])
			require.ErrorIs(t, err, errMessage, "%d bytes of %T", n, m)
		}
		_, err = decodeMessage(append(b[4:], 0))
		require.ErrorIs(t, err, errMessage)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	for _, v := range []any{messages[1].(Access).Auth[0], messages[2]} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			text := fmt.Sprintf(verb, v)
			require.NotContains(t, text, "secret")
			require.NotContains(t, text, "115")
			require.NotContains(t, text, "sixteen")
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range messages {
		f.Add(encodeFrame(m)[4:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := decodeMessage(body)
		if err != nil {
			require.ErrorIs(t, err, errMessage)
			return
		}
		again, err := decodeMessage(encodeFrame(m)[4:])
		require.NoError(t, err)
		require.Equal(t, encodeFrame(m), encodeFrame(again))
	})
}
