package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outputOf returns the output of a report for these events, which are a second apart.
func outputOf(total int, events ...event) string {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	r := newReport(&out, total, now)
	for _, e := range events {
		now = now.Add(time.Second)
		line, _ := json.Marshal(e)
		r.readEvent(line, now)
	}
	r.showRunning(now)
	r.printOutcome(now)
	return out.String()
}

func TestProgressCountsEndedAndNamesRunning(t *testing.T) {
	require.Equal(t, "[1/3] ok a 1.2s (cached)\n[1/3] after 6s: b TestOld (2s)\n"+
		"      1s a\n      1s in all packages, beside each other\n[1/3] no failure, in 6s\n", outputOf(3,
		event{Action: "start", Package: "a"}, event{Action: "output", Package: "a", Output: "ok  \ta\t(cached)\n"},
		event{Action: "pass", Package: "a", Elapsed: 1.24},
		event{Action: "run", Package: "b", Test: "TestOld"}, event{Action: "run", Package: "b", Test: "TestNew"},
		event{Action: "output", Package: "b", Test: "TestNew", Output: "noise\n"}))
	require.Equal(t, "[0] after 0s: compiling\n      0s in all packages, beside each other\n"+
		"[0] no failure, in 0s\n", outputOf(0))
}

func TestProgressNamesNoPausedTest(t *testing.T) {
	run := []event{{Action: "run", Package: "a", Test: "TestParallel"},
		{Action: "pause", Package: "a", Test: "TestParallel"}, {Action: "run", Package: "a", Test: "TestNext"}}
	require.Contains(t, outputOf(1, run...), "after 3s: a TestNext (0s)\n")
	require.Contains(t, outputOf(1, append(run, event{Action: "pass", Package: "a", Test: "TestNext"},
		event{Action: "cont", Package: "a", Test: "TestParallel"})...), "after 5s: a TestParallel (0s)\n")
}

func TestFailureIsShownWithOutput(t *testing.T) {
	out := outputOf(1, event{Action: "run", Package: "a", Test: "TestBad"},
		event{Action: "output", Package: "a", Test: "TestBad", Output: "why\n"},
		event{Action: "run", Package: "a", Test: "TestGood"},
		event{Action: "output", Package: "a", Test: "TestGood", Output: "noise\n"},
		event{Action: "run", Package: "a", Test: "TestHangs"},
		event{Action: "output", Package: "a", Test: "TestHangs", Output: "stack\n"},
		event{Action: "fail", Package: "a", Test: "TestBad"}, event{Action: "pass", Package: "a", Test: "TestGood"},
		event{Action: "output", Package: "a", Output: "panic\n"}, event{Action: "fail", Package: "a"})
	require.True(t, strings.HasPrefix(out, "why\nstack\npanic\n[1/1] FAIL a 0s\n"), out)
	require.True(t, strings.HasSuffix(out, "[1/1] failed: a, in 10s\n"), out)
}

func TestNonEventLinesAreShown(t *testing.T) {
	var out bytes.Buffer
	r := newReport(&out, 0, time.Unix(0, 0))
	r.readEvent([]byte("go: downloading x\n"), time.Unix(0, 0))
	r.readEvent([]byte(`{"ImportPath":"a","Action":"build-output","Output":"a.go:1: wrong\n"}`), time.Unix(0, 0))
	require.Equal(t, "go: downloading x\na.go:1: wrong\n", out.String())
}

func TestExitCodeOfGoTestIsReturned(t *testing.T) {
	var out bytes.Buffer
	code, err := runTests(1, []string{"go", "test", "-run", "^TestNothing$", "../tally"}, &out)
	require.NoError(t, err)
	require.Zero(t, code, out.String())
	require.Contains(t, out.String(), "[1/1] ok github.com/lockstep-go/lockstep/internal/testkit/tally")
	code, err = runTests(1, []string{"go", "test", "./no-such-directory"}, &out)
	require.NoError(t, err)
	require.Equal(t, 1, code)
	code, err = runTests(1, []string{"ls"}, &out)
	require.Error(t, err)
	require.Equal(t, notRun, code)
}

func TestACrashOfTheRaceDetectorIsNotATestFailure(t *testing.T) {
	var out bytes.Buffer
	r := newReport(&out, 0, time.Unix(0, 0))
	for _, e := range []event{
		{Action: "run", Package: "a", Test: "TestHeavy"},
		{Action: "output", Package: "a", Test: "TestHeavy",
			Output: "ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346\n"},
		{Action: "fail", Package: "a"},
		{Action: "run", Package: "b", Test: "TestBad"},
		{Action: "output", Package: "b", Output: "ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346\n"},
		{Action: "fail", Package: "b", Test: "TestBad"}, {Action: "fail", Package: "b"},
		{Action: "run", Package: "c", Test: "TestBad"}, {Action: "fail", Package: "c"},
	} {
		line, err := json.Marshal(e)
		require.NoError(t, err)
		r.readEvent(line, time.Unix(0, 0))
	}
	require.Equal(t, []string{"a", "b", "c"}, r.failed)
	require.Equal(t, []string{"a"}, r.crashed)
	require.Equal(t, []string{"go", "test", "-p", "2"}, withoutPackages([]string{"go", "test", "-p", "2", "./..."}))
}

// TestACrashedPackageIsTestedOnceMore lets a script crash in place of the go command.
func TestACrashedPackageIsTestedOnceMore(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "go")
	require.NoError(t, os.WriteFile(script, []byte(`#!/bin/sh
if [ -e `+dir+`/crashed ]; then
	echo '{"Action":"pass","Package":"'$3'"}'
	exit 0
fi
touch `+dir+`/crashed
echo '{"Action":"output","Package":"a/b","Output":"ThreadSanitizer: CHECK failed: x"}'
echo '{"Action":"fail","Package":"a/b"}'
exit 1
`), 0o700))
	var out bytes.Buffer
	code, err := runTests(1, []string{script, "test", "./..."}, &out)
	require.NoError(t, err)
	require.Zero(t, code, out.String())
	require.Contains(t, out.String(), "Once more: a/b\n[1/1] ok a/b")
}

func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"Action":"run","Package":"a","Test":"T"}` + "\n" + `{"Action":"fail","Package":"a"}`))
	f.Add([]byte("{\n}\nnull\n[]"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		var out bytes.Buffer
		r := newReport(&out, 1, time.Unix(0, 0))
		for line := range bytes.Lines(data) {
			r.readEvent(line, time.Unix(1, 0))
		}
		r.showRunning(time.Unix(2, 0))
		r.printOutcome(time.Unix(3, 0))
	})
}
