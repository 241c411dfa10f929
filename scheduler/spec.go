package scheduler

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule is when a job is due: a set of instants, at whole seconds.
type Schedule struct {
	spec  string
	zone  *time.Location
	ticks tickSet
}

// tickSet is a set of instants at whole seconds.
type tickSet interface {
	// next is the first instant after t, or the zero time beyond the horizon.
	next(t time.Time) time.Time
	// countTicks counts the instants after from and not after to, without visiting each.
	countTicks(from, to time.Time) int64
}

// ParseSpec reads a cron expression:
//
//	minute hour day-of-month month day-of-week             5 fields
//	second minute hour day-of-month month day-of-week      6 fields
//	@hourly @daily @midnight @weekly @monthly @yearly @annually
//	@every 90s                                             whole seconds, counted from 1970-01-01 UTC
//	@at 2026-12-24T18:00:00+01:00                          once; see At
//
// A field is a list of *, ?, n, a-b, each with an optional /step; months and days of the week also
// have names of three letters, and Sunday is 0. When both days are restricted, either is enough.
//
// zone is where the fields are read; nil is UTC. One with a fixed offset counts as that offset for
// all members, under any name: time.FixedZone("CET", 3600) has no summer time. A local time that a
// change of the clocks skips is not due that day. One that it repeats is due once, the first time,
// if the hour field is restricted; with a * for the hour, both are due.
//
// The error wraps framework.ErrInvalid and names the spec. Refused are, beside what cannot be read:
// a zone within the spec, a zone without a name or "Local" (members would differ), one with changes
// of the clocks that is not the one of its name in the time zone database, @every of less than a
// second or of parts of seconds, @at with parts of seconds or before the year 2000, an empty list
// element, a step beyond its field, and a spec without any tick.
func ParseSpec(spec string, zone *time.Location) (Schedule, error) {
	if zone == nil {
		zone = time.UTC
	}
	s := Schedule{spec: strings.Join(strings.Fields(spec), " ")}
	var err error
	if s.zone, err = storedZone(zone); err == nil {
		s.ticks, err = parseSchedule(s.spec, s.zone)
	}
	if err == nil && s.Next(anyTime).IsZero() {
		err = errors.New("it never fires")
	}
	if err != nil {
		return Schedule{}, fmt.Errorf("%w %q: %w", errInvalidSpec, spec, err)
	}
	return s, nil
}

// anyTime is where ParseSpec looks for a first tick: right before the year 2000.
var anyTime = time.Date(1999, time.December, 31, 23, 59, 59, 0, time.UTC)

// Next returns the first tick after a time, in the schedule's zone. It returns the zero time if a
// spec of fields has no tick in the next ten years.
func (s Schedule) Next(after time.Time) time.Time {
	if s.ticks == nil {
		return time.Time{}
	}
	return s.ticks.next(after)
}

// String returns the spec, its fields separated by single spaces.
func (s Schedule) String() string { return s.spec }

// Zone is the schedule's zone. One of a fixed offset has a name that every member reads the
// same, such as Etc/GMT-2 or +05:30.
func (s Schedule) Zone() *time.Location { return s.zone }

func parseSchedule(spec string, zone *time.Location) (tickSet, error) {
	switch {
	case spec == "":
		return nil, errors.New("it is empty")
	case len(spec) > maxSpec:
		return nil, fmt.Errorf("it has %d bytes: want at most %d", len(spec), maxSpec)
	case strings.Contains(spec, "TZ="):
		return nil, errors.New("the zone is not part of the spec: give it as the location")
	case spec == "@every" || strings.HasPrefix(spec, "@every "):
		return parseEvery(strings.TrimPrefix(spec, "@every"), zone)
	case spec == "@at" || strings.HasPrefix(spec, "@at "):
		return parseAt(strings.TrimPrefix(spec, "@at"), zone)
	case strings.HasPrefix(spec, "@"):
		return parseFields(spec, zone)
	}
	if err := checkFields(strings.Fields(spec)); err != nil {
		return nil, err
	}
	return parseFields(spec, zone)
}

const maxSpec = 1000

// parseFields hands a checked spec to the library's parser.
func parseFields(spec string, zone *time.Location) (tickSet, error) {
	parsed, err := parser.Parse(spec)
	if err != nil {
		return nil, err
	}
	fields, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New("it is not a cron expression with fields")
	}
	return newCalendar(fields, zone), nil
}

var parser = cron.NewParser(
	cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// elementPattern matches the elements that the library's parser reads as they look. The parser
// accepts others, too: it reads "*-5" as "*", and "+5" as 5.
var elementPattern = regexp.MustCompile(`^([*?]|\d{1,2}(-\d{1,2})?|[A-Za-z]{3}(-[A-Za-z]{3})?)(/\d{1,2})?$`)

// daySeven is an element of the days of the week that names a day 7, which is Sunday to other
// crons.
var daySeven = regexp.MustCompile(`^(7|\d-7)(/\d)?$`)

// fieldNames and fieldSizes are of the six fields, seconds first.
var (
	fieldNames = [6]string{"second", "minute", "hour", "day-of-month", "month", "day-of-week"}
	fieldSizes = [6]int{60, 60, 24, 31, 12, 7}
)

// checkFields refuses elements that the library's parser accepts and reads in another way than they
// look.
func checkFields(fields []string) error {
	if len(fields) != 5 && len(fields) != 6 {
		return fmt.Errorf("it has %d fields: want 5 or 6", len(fields))
	}
	first := 6 - len(fields)
	for i, field := range fields {
		for _, e := range strings.Split(field, ",") {
			err := checkElement(e, fieldSizes[first+i])
			if err == nil && first+i == 5 && daySeven.MatchString(e) {
				err = errors.New("in a cron expression, Sunday is 0, not 7")
			}
			if err != nil {
				return fmt.Errorf("%s %q: %w", fieldNames[first+i], field, err)
			}
		}
	}
	return nil
}

func checkElement(e string, size int) error {
	if e == "" {
		return errors.New("a list element is empty")
	}
	if !elementPattern.MatchString(e) {
		return fmt.Errorf("%q is not *, ?, n or a-b with an optional /step", e)
	}
	if _, step, ok := strings.Cut(e, "/"); ok {
		if n, _ := strconv.Atoi(step); n > size { // two digits
			return fmt.Errorf("the step %d is beyond the field's %d values", n, size)
		}
	}
	return nil
}
