package zktest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/zkserver"
)

// settings are the settings of a real server that WithSetting accepts.
var settings = map[string]func(value string) Option{
	"tickTime": parseMilliseconds(WithTick),
	"minSessionTimeout": parseMilliseconds(
		func(d time.Duration) Option { return setConfig(func(c *zkserver.Config) { c.MinSessionTimeout = d }) }),
	"maxSessionTimeout": parseMilliseconds(
		func(d time.Duration) Option { return setConfig(func(c *zkserver.Config) { c.MaxSessionTimeout = d }) }),
	"znode.container.checkIntervalMs": parseMilliseconds(WithContainerInterval),
	"jute.maxbuffer":                  parseNumber(WithJuteMaxBuffer),
	"maxClientCnxns":                  parseNumber(withMaxClientCnxnsOrNone),
	"extendedTypesEnabled":            parseFlag(WithExtendedTypes),
	"enforceQuota":                    parseFlag(WithEnforcedQuotas),
	"reconfigEnabled": parseFlag(
		func() Option { return setConfig(func(c *zkserver.Config) { c.ReconfigEnabled = true }) }),
	"nio.sessionlessCnxnTimeout": parseMilliseconds(func(d time.Duration) Option {
		return setConfig(func(c *zkserver.Config) { c.HandshakeTimeout = d })
	}),
	"4lw.commands.whitelist": func(value string) Option {
		return WithFourLetterWords(strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...)
	},
	"DigestAuthenticationProvider.superDigest": WithSuperDigest,
}

// WithSetting applies a setting of a real server, as a line of zoo.cfg or a Java system property,
// with or without the prefix "zookeeper.": tickTime, minSessionTimeout, maxSessionTimeout,
// maxClientCnxns, jute.maxbuffer, extendedTypesEnabled, enforceQuota, 4lw.commands.whitelist,
// DigestAuthenticationProvider.superDigest, znode.container.checkIntervalMs,
// nio.sessionlessCnxnTimeout, reconfigEnabled (which a standalone server answers with
// Unimplemented). It is for programs that read settings as text; Go code uses the other options.
func WithSetting(name, value string) Option {
	return func(c *zkserver.Config) error {
		option, known := settings[strings.TrimPrefix(name, "zookeeper.")]
		if !known {
			return fmt.Errorf("%w: setting %q is not one of %s", ErrOption, name,
				strings.Join(slices.Sorted(maps.Keys(settings)), ", "))
		}
		if err := option(strings.TrimSpace(value))(c); err != nil {
			return fmt.Errorf("%w (%s=%s)", err, name, value)
		}
		return nil
	}
}

func setConfig(change func(*zkserver.Config)) Option {
	return func(c *zkserver.Config) error {
		change(c)
		return nil
	}
}

func refuseOption(format string, args ...any) Option {
	return func(*zkserver.Config) error { return fmt.Errorf("%w: "+format, append([]any{ErrOption}, args...)...) }
}

func parseNumber(option func(int) Option) func(string) Option {
	return func(value string) Option {
		n, err := strconv.Atoi(value)
		if err != nil {
			return refuseOption("%q is not a number", value)
		}
		return option(n)
	}
}

func parseMilliseconds(option func(time.Duration) Option) func(string) Option {
	return parseNumber(func(n int) Option { return option(time.Duration(n) * time.Millisecond) })
}

// parseFlag applies the option if the value is "true" in any case, as Java does.
func parseFlag(option func() Option) func(string) Option {
	return func(value string) Option {
		if strings.EqualFold(value, "true") {
			return option()
		}
		return setConfig(func(*zkserver.Config) {})
	}
}

func withMaxClientCnxnsOrNone(n int) Option {
	if n == 0 {
		return setConfig(func(c *zkserver.Config) { c.MaxClientCnxns = 0 })
	}
	return WithMaxClientCnxns(n)
}
