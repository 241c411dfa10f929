package scheduler

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// knownZone is a zone of the time zone database by its name.
type knownZone struct {
	zone *time.Location
	same atomic.Pointer[time.Location] // a given zone that sameZone has found to be the same, to compare only once
}

// knownZones are the zones that were read, by name. There are as many as the database has at most.
var knownZones sync.Map

func zoneNamed(name string) (*knownZone, error) {
	if known, ok := knownZones.Load(name); ok {
		return known.(*knownZone), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	known, _ := knownZones.LoadOrStore(name, &knownZone{zone: zone})
	return known.(*knownZone), nil
}

// storedZone is the given zone under a name that every member reads as the same zone: the
// database's name, or for another zone with a fixed offset a name such as Etc/GMT-2 or +05:30.
func storedZone(zone *time.Location) (*time.Location, error) {
	name := zone.String()
	if zone == time.UTC {
		return zone, nil
	}
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("the time zone %q is not the same on every machine: give one by its name", name)
	}
	known, err := zoneNamed(name)
	if err == nil {
		if known.same.Load() == zone || sameZone(known.zone, zone) {
			known.same.Store(zone)
			return known.zone, nil
		}
	}
	now := time.Now().In(zone)
	if start, end := now.ZoneBounds(); start.IsZero() && end.IsZero() {
		_, offset := now.Zone()
		return fixedZone(offset)
	}
	if err != nil {
		return nil, fmt.Errorf("the time zone %q: %w", name, err)
	}
	return nil, fmt.Errorf("the time zone %q is not the one of that name in this machine's database", name)
}

// sameZone reports whether the clocks of two zones show the same times from 1970 until 2040.
func sameZone(a, b *time.Location) bool {
	const lastYear = 2040
	for t := time.Unix(0, 0); t.Year() < lastYear; {
		_, offsetA := t.In(a).Zone()
		_, offsetB := t.In(b).Zone()
		_, endA := t.In(a).ZoneBounds()
		_, endB := t.In(b).ZoneBounds()
		if offsetA != offsetB || !endA.Equal(endB) {
			return false
		}
		if endA.IsZero() {
			return true
		}
		t = endA
	}
	return true
}

// fixedZone is the zone of an offset in seconds, as it is stored.
func fixedZone(offset int) (*time.Location, error) {
	const hour = 3600
	if offset == 0 {
		return time.UTC, nil
	}
	if offset%hour == 0 {
		if known, err := zoneNamed(fmt.Sprintf("Etc/GMT%+d", -offset/hour)); err == nil {
			return known.zone, nil
		}
	}
	sign, seconds := '+', offset
	if offset < 0 {
		sign, seconds = '-', -offset
	}
	name := fmt.Sprintf("%c%02d:%02d", sign, seconds/hour, seconds/60%60)
	if seconds%60 != 0 {
		name += fmt.Sprintf(":%02d", seconds%60)
	}
	return readFixedZone(name)
}

var fixedName = regexp.MustCompile(`^([+-])(\d\d):([0-5]\d)(?::([0-5]\d))?$`)

// readFixedZone reads a fixed offset such as +05:30, of less than a day.
func readFixedZone(name string) (*time.Location, error) {
	parts := fixedName.FindStringSubmatch(name)
	if parts == nil {
		return nil, fmt.Errorf("the time zone %q is not an offset such as +05:30", name)
	}
	seconds := 0
	for _, part := range parts[2:] {
		n, _ := strconv.Atoi("0" + part) // two digits, or none
		seconds = seconds*60 + n
	}
	if seconds >= int(24*time.Hour/time.Second) {
		return nil, fmt.Errorf("the time zone %q is a day or more from UTC", name)
	}
	if parts[1] == "-" {
		seconds = -seconds
	}
	return time.FixedZone(name, seconds), nil
}

// readZone reads a stored zone.
func readZone(name string) (*time.Location, error) {
	if fixedName.MatchString(name) {
		return readFixedZone(name)
	}
	known, err := zoneNamed(name)
	if err != nil {
		return nil, err
	}
	return known.zone, nil
}
