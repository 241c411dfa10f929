package scheduler

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Words says in English when a schedule is due, such as "at 03:00 on Monday to Friday". It is for
// people: the text of a schedule may change from release to release.
func (s Schedule) Words() string {
	fields := strings.Fields(s.spec)
	switch {
	case s.ticks == nil:
		return "never"
	case fields[0] == "@every":
		every := s.ticks.(everySchedule)
		return "every " + shortDuration(time.Duration(every.seconds)*time.Second) + ", counted from 1970-01-01 UTC"
	case fields[0] == "@at":
		return "once, at " + s.ticks.(onceSchedule).at.Format("2006-01-02 15:04:05")
	case len(fields) == 1:
		if fields = strings.Fields(descriptorFields[fields[0]]); fields == nil {
			return s.spec
		}
	}
	if len(fields) == 5 {
		fields = append([]string{"0"}, fields...)
	}
	return strings.TrimSpace(wordsOfTime(fields[0], fields[1], fields[2]) + wordsOfDays(fields[3],
		fields[4], fields[5]))
}

// descriptorFields are what the descriptors stand for.
var descriptorFields = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// wordsOfTime are the seconds, minutes and hours in words.
func wordsOfTime(second, minute, hour string) string {
	if at := timesOfDay(second, minute, hour); at != "" {
		return at
	}
	var parts []string
	if second != "0" {
		parts = append(parts, wordsOfField(second, "second", nil))
	}
	if minute != "*" || second == "0" {
		parts = append(parts, wordsOfField(minute, "minute", nil))
	}
	if hour != "*" {
		parts = append(parts, wordsOfField(hour, "hour", nil))
	} else if isNumber(minute) {
		parts = append(parts, "every hour")
	}
	text := strings.Join(parts, " of ")
	if !strings.HasPrefix(text, "every ") {
		text = "at " + text
	}
	return text
}

// timesOfDay are at most 4 times, such as "at 03:00 and 15:00", or "".
func timesOfDay(second, minute, hour string) string {
	var times []string
	for _, h := range strings.Split(hour, ",") {
		for _, m := range strings.Split(minute, ",") {
			if !isNumber(h) || !isNumber(m) || !isNumber(second) {
				return ""
			}
			text := twoDigits(h) + ":" + twoDigits(m)
			if second != "0" {
				text += ":" + twoDigits(second)
			}
			times = append(times, text)
		}
	}
	if len(times) > 4 {
		return ""
	}
	return "at " + joinWords(times, "and")
}

// wordsOfDays are the days and months in words, with a space before them.
func wordsOfDays(day, month, weekday string) (text string) {
	anyDay, anyWeekday := isAny(day), isAny(weekday)
	days, weekdays := wordsOfField(day, "day", nil)+" of the month", wordsOfField(weekday, "", weekdayNames)
	switch {
	case !anyDay && !anyWeekday && (strings.HasPrefix(day, "*") || strings.HasPrefix(weekday, "*")):
		text = " on " + days + " if it is " + weekdays
	case !anyDay && !anyWeekday:
		text = " on " + days + " or on " + weekdays
	case !anyDay:
		text = " on " + days
	case !anyWeekday:
		text = " on " + weekdays
	}
	if !isAny(month) {
		text += " in " + wordsOfField(month, "month", monthNames)
	}
	return text
}

// wordsOfField is a list of elements: "minutes 5 and 10 to 20", or with names "Monday and Friday".
func wordsOfField(field, unit string, names []string) string {
	elements := strings.Split(field, ",")
	words := make([]string, len(elements))
	for i, e := range elements {
		words[i] = wordsOfElement(e, unit, names)
	}
	text := joinWords(words, "and")
	switch {
	case unit == "" || names != nil || strings.HasPrefix(text, "every "):
		return text
	case len(elements) == 1 && isNumber(field):
		return unit + " " + text
	}
	return unit + "s " + text
}

func wordsOfElement(e, unit string, names []string) string {
	values, step, stepped := strings.Cut(e, "/")
	from, to, isRange := strings.Cut(values, "-")
	text := nameOf(from, names)
	if isRange {
		text += " to " + nameOf(to, names)
	}
	if unit == "" {
		unit = "day"
	}
	n, _ := strconv.Atoi(step) // checked by ParseSpec
	switch {
	case isAny(values) && n <= 1:
		return "every " + unit
	case isAny(values):
		return fmt.Sprintf("every %s %s", ordinal(n), unit)
	case stepped && isRange:
		return fmt.Sprintf("every %s %s from %s", ordinal(n), unit, text)
	case stepped:
		return fmt.Sprintf("every %s %s from %s on", ordinal(n), unit, text)
	}
	return text
}

var (
	monthNames = []string{
		"", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
		"November", "December",
	}
	weekdayNames = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
)

// nameOf is the name of a value that is written as a number, or as the first letters of the name.
func nameOf(value string, names []string) string {
	n, err := strconv.Atoi(value)
	if err == nil && n < len(names) {
		return names[n]
	}
	if err == nil {
		return strconv.Itoa(n)
	}
	for _, name := range names {
		if len(name) >= len(value) && strings.EqualFold(name[:len(value)], value) && name != "" {
			return name
		}
	}
	return value
}

func isAny(field string) bool { return field == "*" || field == "?" }

func isNumber(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}

func twoDigits(text string) string {
	n, _ := strconv.Atoi(text) // checked by the caller
	return fmt.Sprintf("%02d", n)
}

func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

func joinWords(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	end := len(words) - 1
	return strings.Join(words[:end], ", ") + " " + last + " " + words[end]
}

// shortDuration is 1h30m rather than 1h30m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
