package zksetting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/zkserver"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBadSettingsAreRefused(t *testing.T) {
	for want, opt := range map[string]zktest.Option{
		`setting "tikTime" is not one of 4lw`:                Option("tikTime", "1"),
		"tick of 0s is less than 1ms (zookeeper.tickTime=0)": Option("zookeeper.tickTime", "0"),
		`"1s" is not a number`:                               Option("tickTime", "1s"),
	} {
		_, err := zktest.New(opt)
		require.ErrorIs(t, err, framework.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}

func TestSettingsOfARealServer(t *testing.T) {
	var got, want zkserver.Config
	for name, value := range map[string]string{
		"tickTime": "100", "minSessionTimeout": "300", "zookeeper.maxSessionTimeout": " 400 ",
		"znode.container.checkIntervalMs": "500",
		"jute.maxbuffer":                  "600", "maxClientCnxns": "0", "zookeeper.extendedTypesEnabled": "TRUE",
		"enforceQuota":    "yes",
		"reconfigEnabled": "true", "zookeeper.nio.sessionlessCnxnTimeout": "700",
		"4lw.commands.whitelist": "ruok, srvr,,*", "zookeeper.DigestAuthenticationProvider.superDigest": "super:x",
	} {
		require.NoError(t, Option(name, value)(&got))
	}
	want.Tick, want.MinSessionTimeout, want.MaxSessionTimeout = 100*time.Millisecond, 300*time.Millisecond,
		400*time.Millisecond
	want.ContainerInterval, want.JuteMaxBuffer, want.ExtendedTypes = 500*time.Millisecond, 600, true
	want.ReconfigEnabled, want.HandshakeTimeout = true, 700*time.Millisecond
	want.FourLetterWords, want.SuperDigest = []string{"ruok", "srvr", "*"}, "super:x"
	require.Equal(t, want, got)
	require.NoError(t, Option("maxClientCnxns", "60")(&got))
	require.NoError(t, Option("enforceQuota", "true")(&got))
	require.Equal(t, 60, got.MaxClientCnxns)
	require.True(t, got.EnforceQuota)
}
