package ensemble

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

// ServersVariable is the environment variable with the servers that tests share:
// host:port, separated by commas.
const ServersVariable = "LOCKSTEP_TEST_SERVERS"

// TB is the part of testing.TB that this package needs.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

var errNotShared = errors.New("real ensemble left out: " + ServersVariable + " is not set (run make test)")

// Shared returns the addresses of the healthy ensemble that all tests of a run share.
// A test must use nodes of its own and must not disturb the servers. Without a shared ensemble
// the test is skipped, or fails if CI=true.
func Shared(tb TB) []string {
	tb.Helper()
	servers, err := sharedServers()
	if err != nil {
		skipOrFail(tb, err)
	}
	return servers
}

func sharedServers() ([]string, error) {
	value := os.Getenv(ServersVariable)
	if value == "" {
		return nil, errNotShared
	}
	return strings.Split(value, ","), nil
}

// Private starts an ensemble for one test, which may break it, and closes it after the test. If
// Java or ZooKeeper is missing, the test is skipped, or fails if CI=true.
func Private(tb TB, config Config) *Ensemble {
	tb.Helper()
	e, err := Start(context.Background(), config)
	switch {
	case errors.Is(err, ErrNotInstalled):
		skipOrFail(tb, fmt.Errorf("real ensemble left out: %w", err))
	case err != nil:
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Errorf("%v", err)
		}
	})
	return e
}

func skipOrFail(tb TB, err error) {
	tb.Helper()
	if inCI() {
		tb.Fatalf("CI=true, and the %v", err)
	}
	tb.Skipf("%v", err)
}

func inCI() bool { return os.Getenv("CI") == "true" }

// Announce is for the TestMain of a package in which all tests use Shared or Private. If neither
// works on this machine and CI is not true, it prints the reason and selects no test, so that "go
// test" reports "[no tests to run]" for the package instead of "ok".
func Announce() {
	_, err := sharedServers()
	if err != nil {
		err = Installed()
	}
	announce(err)
}

// AnnounceShared does what Announce does, for a package in which all tests use Shared.
func AnnounceShared() {
	_, err := sharedServers()
	announce(err)
}

func announce(err error) {
	if err == nil || inCI() {
		return
	}
	fmt.Println(err)
	flag.Parse() // else the tests' own parsing would undo the selection
	if err := flag.Set("test.run", "^$"); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
