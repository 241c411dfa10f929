package framework_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// TestACredentialIsHiddenInJSONToo: a program may log its whole Config.
func TestACredentialIsHiddenInJSONToo(t *testing.T) {
	c := framework.Credential{Scheme: "digest", Auth: []byte("user:hunter2")}
	cfg := framework.Config{Auth: []framework.Credential{c}}
	coded := base64.StdEncoding.EncodeToString(c.Auth)
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("connecting", "config", cfg, "credential", c, "pointer", &c)
	require.NotContains(t, out.String(), coded)
	b, err := json.Marshal(cfg.Auth)
	require.NoError(t, err)
	require.NotContains(t, string(b), coded)
}
