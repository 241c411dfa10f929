package scheduler

import (
	"archive/zip"
	"go/build"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFixedOffsetZoneIsStoredAsOffset(t *testing.T) {
	for name, c := range map[string]struct {
		zone *time.Location
		want string
	}{
		"utc":            {time.FixedZone("UTC", 0), "UTC"},
		"nought":         {time.FixedZone("mine", 0), "UTC"},
		"hours":          {time.FixedZone("UTC+2", 2*3600), "Etc/GMT-2"},
		"west":           {time.FixedZone("x", -5*3600), "Etc/GMT+5"},
		"called as real": {time.FixedZone("CET", 3600), "Etc/GMT-1"},
		"half an hour":   {time.FixedZone("x", 5*3600+1800), "+05:30"},
		"seconds":        {time.FixedZone("x", -(3600 + 23)), "-01:00:23"},
		"far":            {time.FixedZone("x", 15*3600), "+15:00"},
		"real":           {zone(t, "CET"), "CET"},
		"of the table":   {time.FixedZone("+05:30", 5*3600+1800), "+05:30"},
	} {
		t.Run(name, func(t *testing.T) {
			s := parsed(t, "0 12 * * *", c.zone)
			require.Equal(t, c.want, s.Zone().String())
			again, err := readSchedule(s.String(), s.Zone().String())
			require.NoError(t, err)
			for _, month := range []time.Month{time.January, time.July} {
				now := time.Date(2026, month, 3, 0, 0, 0, 0, time.UTC)
				tick := s.Next(now)
				require.True(t, tick.Equal(again.Next(now)))
				hour, _, _ := tick.In(c.zone).Clock()
				require.Equal(t, 12, hour)
			}
		})
	}
	for _, stored := range []string{"+24:00", "+1:00", "-05:60", "+05:30:", "Moon/Base", "../etc/passwd"} {
		_, err := readSchedule("* * * * *", stored)
		require.ErrorIs(t, err, errInvalidSpec, stored)
	}
	_, err := ParseSpec("* * * * *", time.FixedZone("x", 25*3600))
	require.ErrorContains(t, err, "a day or more")
}

func TestZoneWithWrongNameIsRefused(t *testing.T) {
	data := zoneData(t, "Europe/Berlin")
	for name, why := range map[string]string{"Moon/Base": "unknown time zone",
		"America/New_York": "not the one of that name"} {
		odd, err := time.LoadLocationFromTZData(name, data)
		require.NoError(t, err)
		_, err = ParseSpec("0 3 * * *", odd)
		require.ErrorIs(t, err, errInvalidSpec)
		require.ErrorContains(t, err, why)
		require.ErrorContains(t, err, name)
	}
	same, err := time.LoadLocationFromTZData("Europe/Berlin", data)
	require.NoError(t, err)
	require.Equal(t, "Europe/Berlin", parsed(t, "0 3 * * *", same).Zone().String())
}

func TestAJobInAFixedZoneIsPausedAndResumed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		job := one(Job{Spec: "0 4 * * *", Zone: time.FixedZone("CET", 3600), Run: quick})
		a := w.start("a", job)
		reports, err := a.Jobs(t.Context())
		require.NoError(t, err)
		require.Equal(t, "03:00", reports[0].Next(time.Now()).UTC().Format("15:04"))
		require.NoError(t, a.Pause(t.Context(), "j"))
		require.NoError(t, a.Resume(t.Context(), "j"))
		time.Sleep(3*time.Hour + time.Second)
		require.Equal(t, []string{"03:00:00"}, w.log.ticks())
		require.NoError(t, a.Reschedule(t.Context(), "j", "30 10 * * *", time.FixedZone("IST", 5*3600+1800)))
		time.Sleep(2 * time.Hour)
		require.Equal(t, []string{"03:00:00", "05:00:00"}, w.log.ticks())
	})
}

// zoneData is what the database says of a zone.
func zoneData(t *testing.T, name string) []byte {
	for _, dir := range []string{"/usr/share/zoneinfo/", "/usr/lib/zoneinfo/", "/usr/share/lib/zoneinfo/"} {
		if data, err := os.ReadFile(dir + name); err == nil {
			return data
		}
	}
	archive, err := zip.OpenReader(filepath.Join(build.Default.GOROOT, "lib", "time", "zoneinfo.zip"))
	require.NoError(t, err)
	defer func() { require.NoError(t, archive.Close()) }()
	file, err := archive.Open(name)
	require.NoError(t, err)
	data, err := io.ReadAll(file)
	require.NoError(t, err)
	return data
}

func FuzzReadZone(f *testing.F) {
	f.Add("+05:30")
	f.Add("Etc/GMT-2")
	f.Fuzz(func(t *testing.T, name string) {
		zone, err := readZone(name)
		if err != nil || zone.String() == "Local" {
			return
		}
		stored, err := storedZone(zone)
		require.NoError(t, err)
		again, err := readZone(stored.String())
		require.NoError(t, err)
		require.True(t, sameZone(zone, again))
	})
}
