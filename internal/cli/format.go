package cli

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// All texts for people show times with FormatTime, and ages with formatAge: columns show ages,
// sentences times. Where the zone matters, such as for the ticks of a job with its own zone, and in
// fields of other programs, times are those of RFC 3339.

// FormatTime formats a time in the zone of this machine, or "" if it is zero.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// FormatSince is how long ago a time was, or "" if it is zero.
func FormatSince(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return FormatAge(now.Sub(t))
}

// FormatAge is how long ago something was, in at most two units.
func FormatAge(d time.Duration) string {
	seconds := int64(math.Max(0, d.Seconds())) // clocks differ
	units := []struct {
		name string
		size int64
	}{{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}}
	for i, u := range units {
		if seconds < u.size {
			continue
		}
		text := fmt.Sprint(seconds/u.size, u.name)
		if i+1 < len(units) {
			next := units[i+1]
			text += fmt.Sprintf("%02d%s", seconds%u.size/next.size, next.name)
		}
		return text + " ago"
	}
	return "just now"
}

func FormatMetadata(m map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, ShortenText(key)+"="+ShortenText(m[key]))
	}
	return strings.Join(pairs, " ")
}

// FormatNumber is a number of things.
func FormatNumber(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func SortNames(names []string) []string {
	slices.Sort(names)
	return names
}

// KnownTime returns nil for the zero time, which stands for an unknown one.
func KnownTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// FormatCount formats a number, or "" for 0.
func FormatCount[N int | int64](n N) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// OwnerName is the name in an entry's data, or else its session, which can be found in the servers'
// logs.
func OwnerName(e locks.Entry) string {
	switch {
	case e.Owner != "":
		return ShortenText(e.Owner)
	case e.Data != "" && !e.Revoked: // Curator's mark names nobody
		return ShortenText(e.Data)
	}
	if e.Session == 0 {
		_, name := znode.Split(e.Node)
		return ShortenText(name)
	}
	return "session " + e.Session.String()
}

// longestText is how many letters of a text are shown at most.
const longestText = 60

// ShortenText returns the beginning of a text that any program may have written, quoted if need be.
func ShortenText(text string) string {
	if text == "" {
		return ""
	}
	return QuoteName(CutText(text))
}

// CutText cuts a text that is longer than longestText.
func CutText(text string) string {
	if runes := []rune(text); len(runes) > longestText {
		return string(runes[:longestText-1]) + "…"
	}
	return text
}
