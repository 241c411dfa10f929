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

// settings are those of a real server that WithSetting takes.
var settings = map[string]func(value string) Option{
	"tickTime":                        milliseconds(WithTick),
	"minSessionTimeout":               milliseconds(func(d time.Duration) Option { return set(func(c *zkserver.Config) { c.MinSessionTimeout = d }) }),
	"maxSessionTimeout":               milliseconds(func(d time.Duration) Option { return set(func(c *zkserver.Config) { c.MaxSessionTimeout = d }) }),
	"znode.container.checkIntervalMs": milliseconds(WithContainerInterval),
	"jute.maxbuffer":                  number(WithJuteMaxBuffer),
	"maxClientCnxns":                  number(withMaxClientCnxnsOrNone),
	"extendedTypesEnabled":            flag(WithExtendedTypes),
	"enforceQuota":                    flag(WithEnforcedQuotas),
	"reconfigEnabled":                 flag(func() Option { return set(func(c *zkserver.Config) { c.ReconfigEnabled = true }) }),
	"nio.sessionlessCnxnTimeout":      milliseconds(func(d time.Duration) Option { return set(func(c *zkserver.Config) { c.HandshakeTimeout = d }) }),
	"4lw.commands.whitelist": func(value string) Option {
		return WithFourLetterWords(strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...)
	},
	"DigestAuthenticationProvider.superDigest": WithSuperDigest,
}

// WithSetting sets what a line of a real server's zoo.cfg or a Java system property sets, with or without the prefix
// "zookeeper.": tickTime, minSessionTimeout, maxSessionTimeout, maxClientCnxns, jute.maxbuffer, extendedTypesEnabled,
// enforceQuota, 4lw.commands.whitelist, DigestAuthenticationProvider.superDigest, znode.container.checkIntervalMs,
// nio.sessionlessCnxnTimeout, reconfigEnabled (which a standalone server answers with Unimplemented). It is for programs that take settings as text; the other options are the same in Go.
func WithSetting(name, value string) Option {
	return func(c *zkserver.Config) error {
		option, known := settings[strings.TrimPrefix(name, "zookeeper.")]
		if !known {
			return fmt.Errorf("%w: setting %q is none of %s", ErrOption, name, strings.Join(slices.Sorted(maps.Keys(settings)), ", "))
		}
		if err := option(strings.TrimSpace(value))(c); err != nil {
			return fmt.Errorf("%w (%s=%s)", err, name, value)
		}
		return nil
	}
}

func set(change func(*zkserver.Config)) Option {
	return func(c *zkserver.Config) error {
		change(c)
		return nil
	}
}

func refuse(format string, args ...any) Option {
	return func(*zkserver.Config) error { return fmt.Errorf("%w: "+format, append([]any{ErrOption}, args...)...) }
}

func number(option func(int) Option) func(string) Option {
	return func(value string) Option {
		n, err := strconv.Atoi(value)
		if err != nil {
			return refuse("%q is no number", value)
		}
		return option(n)
	}
}

func milliseconds(option func(time.Duration) Option) func(string) Option {
	return number(func(n int) Option { return option(time.Duration(n) * time.Millisecond) })
}

// flag is off for anything but true, as in Java.
func flag(option func() Option) func(string) Option {
	return func(value string) Option {
		if strings.EqualFold(value, "true") {
			return option()
		}
		return set(func(*zkserver.Config) {})
	}
}

func withMaxClientCnxnsOrNone(n int) Option {
	if n == 0 {
		return set(func(c *zkserver.Config) { c.MaxClientCnxns = 0 })
	}
	return WithMaxClientCnxns(n)
}
