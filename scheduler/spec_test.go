package scheduler

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	require.NoError(t, err)
	return loc
}

func parsed(t testing.TB, spec string, loc *time.Location) Schedule {
	t.Helper()
	s, err := ParseSpec(spec, loc)
	require.NoError(t, err)
	return s
}

func at(t testing.TB, value string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, value)
	require.NoError(t, err)
	return v
}

// list enumerates the ticks of a schedule, as local times.
func list(s Schedule, from, to time.Time) (out []string) {
	for t := s.Next(from); !t.IsZero() && !t.After(to); t = s.Next(t) {
		out = append(out, t.Format("2006-01-02 15:04:05 -0700"))
	}
	return out
}

func TestBadSpecsAreRefusedByName(t *testing.T) {
	for spec, why := range map[string]string{
		"":                           "empty",
		"   ":                        "empty",
		"TZ=UTC":                     "not part of the spec",
		"TZ=":                        "not part of the spec",
		"CRON_TZ=UTC":                "not part of the spec",
		"TZ=UTC * * * * *":           "not part of the spec",
		" TZ=UTC * * * * *":          "not part of the spec",
		"CRON_TZ=UTC 0 3 * * *":      "not part of the spec",
		"@at":                        "want a time such as",
		"@at tomorrow":               "want a time such as",
		"@at 2026-12-24 18:00:00":    "want a time such as",
		"@at 2026-12-24T18:00:00.5Z": "not at a whole second",
		"@at 1999-12-31T23:59:59Z":   "before the year 2000",
		"@every 0s":                  "less than a second",
		"@every -5m":                 "less than a second",
		"@every 999ms":               "less than a second",
		"@every 1500ms":              "whole seconds",
		"@every 1m0.5s":              "whole seconds",
		"@every":                     "duration",
		"@every soon":                "duration",
		"@every 9999999999h":         "duration",
		"@reboot":                    "unrecognized descriptor",
		"@Daily":                     "unrecognized descriptor",
		"@":                          "unrecognized descriptor",
		"0 0 30 2 *":                 "never fires",
		"0 0 31 4,6,9,11 *":          "never fires",
		", * * * *":                  "list element is empty",
		"1,,2 * * * *":               "list element is empty",
		"1, * * * *":                 "list element is empty",
		"5/100 * * * *":              "is not",
		"5/61 * * * *":               "beyond the field's 60",
		"* */25 * * *":               "beyond the field's 24",
		"*/0 * * * *":                "positive",
		"* * * * 7":                  "Sunday is 0, not 7",
		"* * * * mon,5-7":            "Sunday is 0, not 7",
		"0 * * * * 7/2":              "Sunday is 0, not 7",
		"* * * * 5-1":                "beyond end",
		"60 * * * *":                 "above maximum",
		"* * 0 * *":                  "below minimum",
		"* * L * *":                  "is not",
		"* * * * 5#2":                "is not",
		"*-5 * * * *":                "is not",
		"+5 * * * *":                 "is not",
		"-5 * * * *":                 "is not",
		"1-5-7 * * * *":              "is not",
		"1/2/3 * * * *":              "is not",
		"jan * * * *":                "parse",
		"* * * foo *":                "parse",
		"* * * *":                    "4 fields",
		"* * * * * * *":              "7 fields",
		"٣ * * * *":                  "is not",
		"0 0 " + strings.Repeat("1,", 600) + "1 * *": "bytes",
	} {
		s, err := ParseSpec(spec, nil)
		require.ErrorIs(t, err, errInvalidSpec, "%q", spec)
		require.ErrorContains(t, err, why, "%q", spec)
		require.ErrorContains(t, err, fmt.Sprintf("%q", spec))
		require.Zero(t, s)
		require.Zero(t, s.Next(time.Now()), "the zero schedule never fires")
	}
	for _, loc := range []*time.Location{time.Local, time.FixedZone("", 3600)} {
		_, err := ParseSpec("0 3 * * *", loc)
		require.ErrorIs(t, err, errInvalidSpec)
		require.ErrorContains(t, err, "time zone")
	}
}

func TestSpecsAreShownInOneForm(t *testing.T) {
	s := parsed(t, "  0   3 *\t* * ", nil)
	require.Equal(t, "0 3 * * *", s.String())
	require.Equal(t, time.UTC, s.Zone())
}

func TestSecondsComeFirstOfSixFields(t *testing.T) {
	s := parsed(t, "30 15 10 * * *", nil)
	require.Equal(t, at(t, "2026-05-04T10:15:30Z"), s.Next(at(t, "2026-05-04T00:00:00.5Z")))
	s = parsed(t, "15 10 * * *", nil)
	require.Equal(t, at(t, "2026-05-04T10:15:00Z"), s.Next(at(t, "2026-05-04T00:00:00Z")))
}

func TestEveryCountsFromTheEpoch(t *testing.T) {
	s := parsed(t, "@every 7h", nil)
	a, b := s.Next(at(t, "2026-05-04T00:00:00Z")), s.Next(at(t, "2026-05-04T00:00:01.7Z"))
	require.Equal(t, a, b, "two members that look at different times agree")
	require.Zero(t, a.Unix()%(7*3600))
	require.Equal(t, a.Add(7*time.Hour), s.Next(a), "a tick is after the one before")
	require.Equal(t, int64(-7*3600), s.Next(time.Unix(-7*3600-1, 0)).Unix())
}

func TestSkippedLocalTimeIsNotDue(t *testing.T) {
	ny := zone(t, "America/New_York")
	from, to := at(t, "2026-03-07T12:00:00-05:00"), at(t, "2026-03-09T12:00:00-04:00")
	require.Equal(t, []string{"2026-03-09 02:30:00 -0400"}, list(parsed(t, "30 2 * * *", ny), from, to))
	require.Equal(t, []string{"2026-03-08 03:00:00 -0400", "2026-03-09 03:00:00 -0400"},
		list(parsed(t, "0 3 * * *", ny), from, to))
	require.Len(t, list(parsed(t, "0 * * * *", ny), from, to), 47)
}

func TestRepeatedLocalTimeIsDueOnceForRestrictedHour(t *testing.T) {
	ny := zone(t, "America/New_York")
	from, to := at(t, "2026-10-31T12:00:00-04:00"), at(t, "2026-11-02T12:00:00-05:00")
	require.Equal(t, []string{"2026-11-01 01:30:00 -0400", "2026-11-02 01:30:00 -0500"},
		list(parsed(t, "30 1 * * *", ny), from, to))
	require.Equal(t, []string{"2026-11-01 01:00:00 -0400", "2026-11-02 01:00:00 -0500"},
		list(parsed(t, "0 1-1 * * *", ny), from, to))
	require.Equal(t, []string{"2026-11-01 02:00:00 -0500", "2026-11-02 02:00:00 -0500"},
		list(parsed(t, "0 2 * * *", ny), from, to))
	require.Len(t, list(parsed(t, "30 * * * *", ny), from, to), 49, "with * for the hour, real time counts")
	second := at(t, "2026-11-01T01:10:00-05:00")
	require.Equal(t, "2026-11-02 01:30:00 -0500", list(parsed(t, "30 1 * * *", ny), second, to)[0],
		"looked at from within the second hour")
}

func TestADayWithoutMidnightLosesMidnightOnly(t *testing.T) {
	cairo := zone(t, "Africa/Cairo") // 2026-04-24 begins at 1:00
	from, to := at(t, "2026-04-23T12:00:00+02:00"), at(t, "2026-04-25T23:00:00+03:00")
	require.Equal(t, []string{"2026-04-25 00:00:00 +0300"}, list(parsed(t, "0 0 * * *", cairo), from, to))
	require.Equal(t, []string{"2026-04-24 12:00:00 +0300"}, list(parsed(t, "0 12 * * fri", cairo), from, to))
	require.Equal(t, []string{"2026-04-24 12:00:00 +0300"}, list(parsed(t, "0 12 24 4 *", cairo), from, to))
}

func TestSaoPauloHadDaysWithoutMidnightAndWithTwoElevens(t *testing.T) {
	saoPaulo := zone(t, "America/Sao_Paulo") // 2018-11-04 began at 1:00; 2018-02-17 23:00 came twice
	from, to := at(t, "2018-11-03T12:00:00-03:00"), at(t, "2018-11-05T12:00:00-02:00")
	require.Equal(t, []string{"2018-11-05 00:00:00 -0200"}, list(parsed(t, "0 0 * * *", saoPaulo), from, to))
	require.Equal(t, []string{"2018-11-04 01:00:00 -0200", "2018-11-05 01:00:00 -0200"},
		list(parsed(t, "0 1 * * *", saoPaulo), from, to))
	require.Len(t, list(parsed(t, "0 * * * *", saoPaulo), from, to), 47)
	from, to = at(t, "2018-02-17T12:00:00-02:00"), at(t, "2018-02-18T12:00:00-03:00")
	require.Equal(t, []string{"2018-02-17 23:30:00 -0200"}, list(parsed(t, "30 23 * * *", saoPaulo), from, to),
		"once, the first time")
	require.Len(t, list(parsed(t, "30 * * * *", saoPaulo), from, to), 25)
	require.Equal(t, []string{"2018-02-18 00:00:00 -0300"}, list(parsed(t, "0 0 * * *", saoPaulo), from, to))
}

func TestHalfHourChangesOfTheClocks(t *testing.T) {
	lordHowe := zone(t, "Australia/Lord_Howe") // 2026-04-05 02:00 -> 01:30, 2026-10-04 02:00 -> 02:30
	from, to := at(t, "2026-04-04T14:00:00Z"), at(t, "2026-04-05T14:00:00Z")
	require.Equal(t, []string{"2026-04-05 01:45:00 +1100"}, list(parsed(t, "45 1 * * *", lordHowe), from, to))
	from, to = at(t, "2026-10-03T14:00:00Z"), at(t, "2026-10-04T14:00:00Z")
	require.Empty(t, list(parsed(t, "15 2 * * *", lordHowe), from, to))
	require.Equal(t, []string{"2026-10-04 02:30:00 +1100"}, list(parsed(t, "30 2 * * *", lordHowe), from, to))
}

// randomSpec draws a spec that may be sparse or dense.
func randomSpec(r *rand.Rand) string {
	field := func(lo, hi int) string {
		n := func() int { return lo + r.IntN(hi-lo+1) }
		switch r.IntN(6) {
		case 0, 1:
			return "*"
		case 2:
			return fmt.Sprintf("*/%d", 1+r.IntN(hi-lo+1))
		case 3:
			a, b := n(), n()
			return fmt.Sprintf("%d-%d/%d", min(a, b), max(a, b), 1+r.IntN(3))
		case 4:
			return fmt.Sprintf("%d,%d,%d", n(), n(), n())
		}
		return fmt.Sprint(n())
	}
	return strings.Join([]string{field(0, 59), field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)},
		" ")
}

func TestNextAgreesWithTheLibraryWhereClocksDoNotChange(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	kolkata := zone(t, "Asia/Kolkata")
	for range 3000 {
		spec := randomSpec(r)
		ours, err := ParseSpec(spec, kolkata)
		if err != nil {
			require.ErrorContains(t, err, "never fires", spec)
			continue
		}
		theirs, err := parser.Parse(spec)
		require.NoError(t, err)
		theirs.(*cron.SpecSchedule).Location = kolkata
		x := time.Unix(r.Int64N(4e9), r.Int64N(1e9))
		for range 5 {
			want := theirs.Next(x)
			if want.IsZero() {
				break // beyond its five years
			}
			require.True(t, ours.Next(x).Equal(want), "%s after %v: %v, want %v", spec, x, ours.Next(x), want)
			x = want
		}
	}
}

func TestCountAndLatestAgreeWithEachTick(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	zones := []*time.Location{time.UTC, zone(t, "America/New_York"), zone(t, "Africa/Cairo"),
		zone(t, "Australia/Lord_Howe"), zone(t, "America/Havana")}
	for i := range 2000 {
		spec := randomSpec(r)
		switch {
		case i%40 == 0:
			spec = At(at(t, "2026-01-01T00:00:00Z").Add(time.Duration(r.Int64N(int64(366 * 24 * time.Hour)))))
		case i%20 == 0:
			spec = fmt.Sprintf("@every %ds", 1+r.IntN(5000))
		}
		s, err := ParseSpec(spec, zones[r.IntN(len(zones))])
		if err != nil {
			continue
		}
		from := at(t, "2026-01-01T00:00:00Z").Add(time.Duration(r.Int64N(int64(366 * 24 * time.Hour))))
		if i%2 == 0 { // around changes of the clocks
			_, change := from.In(s.Zone()).ZoneBounds()
			if !change.IsZero() {
				from = change.Add(-time.Duration(r.Int64N(int64(4 * time.Hour))))
			}
		}
		to := from.Add(time.Duration(r.Int64N(int64(10 * time.Hour))))
		var n int64
		var first, last time.Time
		for x := s.Next(from); !x.IsZero() && !x.After(to); x = s.Next(x) {
			if n == 0 {
				first = x
			}
			n, last = n+1, x
		}
		d := s.findDueTicks(from, to)
		require.Equal(t, n, d.count, "%s in %s after %v until %v", spec, s.Zone(), from, to)
		if n > 0 {
			require.True(t, d.first.Equal(first) && d.latest.Equal(last), "%s in %s: %v", spec, s.Zone(), d)
		}
	}
}

func TestLongGapsAreCountedWithoutVisitingEachTick(t *testing.T) {
	from, to := at(t, "1976-01-01T00:00:00Z"), at(t, "2076-01-01T00:00:00Z")
	d := parsed(t, "* * * * * *", zone(t, "America/New_York")).findDueTicks(from, to)
	require.Equal(t, int64(to.Sub(from)/time.Second), d.count)
	require.True(t, d.latest.Equal(to))
	d = parsed(t, "@every 1s", nil).findDueTicks(from, to)
	require.Equal(t, int64(to.Sub(from)/time.Second), d.count)
	require.Equal(t, int64(25), parsed(t, "0 0 29 2 *", nil).findDueTicks(from, to).count)
	require.Zero(t, parsed(t, "* * * * *", nil).findDueTicks(to, from))
}

func FuzzParseSpec(f *testing.F) {
	for _, s := range []string{"* * * * *", "0 30 2 * * *", "@every 90s", "@daily", "@at 2026-12-24T18:00:00+01:00",
		"TZ=UTC", "*/5 1-5,7 ? jan-mar mon",
		", * * * *", "5/100 * * * *", "0 0 29 2 *"} {
		f.Add(s)
	}
	ny := zone(f, "America/New_York")
	f.Fuzz(func(t *testing.T, spec string) {
		s, err := ParseSpec(spec, ny)
		if err != nil {
			require.ErrorIs(t, err, errInvalidSpec)
			return
		}
		from := time.Date(2026, 3, 7, 12, 0, 0, 0, ny)
		if strings.HasPrefix(s.String(), "@at ") {
			from = anyTime
		}
		a := s.Next(from)
		require.False(t, a.IsZero())
		b := s.Next(a)
		require.True(t, b.IsZero() || b.After(a))
		require.Equal(t, a, s.Next(a.Add(-time.Second)), "a tick is the next one of the second before it")
		require.Equal(t, int64(1), s.findDueTicks(a.Add(-time.Second), a).count)
		again, err := ParseSpec(s.String(), ny)
		require.NoError(t, err)
		require.Equal(t, a, again.Next(from))
		require.NotEmpty(t, s.Words())
	})
}

func TestTheEndOfALeapYearBeyondTheZonesTable(t *testing.T) {
	s := parsed(t, "0 12 * * *", zone(t, "America/New_York"))
	require.Equal(t, "2040-12-31 12:00:00 -0500",
		s.Next(at(t, "2040-12-30T23:00:00Z")).Format("2006-01-02 15:04:05 -0700"))
}
