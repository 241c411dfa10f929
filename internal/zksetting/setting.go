// Package zksetting takes the settings of a real server, as text, as options of the in-memory
// server.
package zksetting

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/zkserver"
	"github.com/lockstep-go/lockstep/zktest"
)

// settings are the settings of a real server that Option accepts.
var settings = map[string]func(value string) zktest.Option{
	"tickTime": parseMilliseconds(zktest.WithTick),
	"minSessionTimeout": parseMilliseconds(
		func(d time.Duration) zktest.Option {
			return setConfig(func(c *zkserver.Config) { c.MinSessionTimeout = d })
		}),
	"maxSessionTimeout": parseMilliseconds(
		func(d time.Duration) zktest.Option {
			return setConfig(func(c *zkserver.Config) { c.MaxSessionTimeout = d })
		}),
	"znode.container.checkIntervalMs": parseMilliseconds(zktest.WithContainerInterval),
	"jute.maxbuffer":                  parseNumber(zktest.WithJuteMaxBuffer),
	"maxClientCnxns":                  parseNumber(withMaxClientCnxnsOrNone),
	"extendedTypesEnabled":            parseFlag(zktest.WithExtendedTypes),
	"enforceQuota":                    parseFlag(zktest.WithEnforcedQuotas),
	"reconfigEnabled": parseFlag(
		func() zktest.Option { return setConfig(func(c *zkserver.Config) { c.ReconfigEnabled = true }) }),
	"nio.sessionlessCnxnTimeout": parseMilliseconds(func(d time.Duration) zktest.Option {
		return setConfig(func(c *zkserver.Config) { c.HandshakeTimeout = d })
	}),
	"4lw.commands.whitelist": func(value string) zktest.Option {
		words := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
		return zktest.WithFourLetterWords(words...)
	},
	"DigestAuthenticationProvider.superDigest": zktest.WithSuperDigest,
}

// Option applies a setting of a real server, as a line of zoo.cfg or a Java system property,
// with or without the prefix "zookeeper.": tickTime, minSessionTimeout, maxSessionTimeout,
// maxClientCnxns, jute.maxbuffer, extendedTypesEnabled, enforceQuota, 4lw.commands.whitelist,
// DigestAuthenticationProvider.superDigest, znode.container.checkIntervalMs,
// nio.sessionlessCnxnTimeout, reconfigEnabled (which a standalone server answers with
// Unimplemented).
func Option(name, value string) zktest.Option {
	return func(c *zkserver.Config) error {
		option, known := settings[strings.TrimPrefix(name, "zookeeper.")]
		if !known {
			return fmt.Errorf("%w: setting %q is not one of %s", framework.ErrInvalid, name,
				strings.Join(slices.Sorted(maps.Keys(settings)), ", "))
		}
		if err := option(strings.TrimSpace(value))(c); err != nil {
			return fmt.Errorf("%w (%s=%s)", err, name, value)
		}
		return nil
	}
}

func setConfig(change func(*zkserver.Config)) zktest.Option {
	return func(c *zkserver.Config) error {
		change(c)
		return nil
	}
}

func refuseOption(format string, args ...any) zktest.Option {
	return func(*zkserver.Config) error {
		return fmt.Errorf("%w: "+format, append([]any{framework.ErrInvalid}, args...)...)
	}
}

func parseNumber(option func(int) zktest.Option) func(string) zktest.Option {
	return func(value string) zktest.Option {
		n, err := strconv.Atoi(value)
		if err != nil {
			return refuseOption("%q is not a number", value)
		}
		return option(n)
	}
}

func parseMilliseconds(option func(time.Duration) zktest.Option) func(string) zktest.Option {
	return parseNumber(func(n int) zktest.Option { return option(time.Duration(n) * time.Millisecond) })
}

// parseFlag applies the option if the value is "true" in any case, as Java does.
func parseFlag(option func() zktest.Option) func(string) zktest.Option {
	return func(value string) zktest.Option {
		if strings.EqualFold(value, "true") {
			return option()
		}
		return setConfig(func(*zkserver.Config) {})
	}
}

func withMaxClientCnxnsOrNone(n int) zktest.Option {
	if n == 0 {
		return setConfig(func(c *zkserver.Config) { c.MaxClientCnxns = 0 })
	}
	return zktest.WithMaxClientCnxns(n)
}
