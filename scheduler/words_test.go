package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSchedulesInWords(t *testing.T) {
	for spec, words := range map[string]string{
		"0 3 * * *":                "at 03:00",
		"30 3,15 * * *":            "at 03:30 and 15:30",
		"15 30 3 * * *":            "at 03:30:15",
		"* * * * *":                "every minute",
		"* * * * * *":              "every second",
		"*/10 * * * *":             "every 10th minute",
		"*/5 * * * * *":            "every 5th second",
		"*/3 9-17 * * 1-5":         "every 3rd minute of hours 9 to 17 on Monday to Friday",
		"5 * * * *":                "at minute 5 of every hour",
		"5,35 * * * *":             "at minutes 5 and 35",
		"0 */2 * * *":              "at minute 0 of every 2nd hour",
		"0 0 1 * *":                "at 00:00 on day 1 of the month",
		"0 0 13 * FRI":             "at 00:00 on day 13 of the month or on Friday",
		"0 0 */2 * FRI":            "at 00:00 on every 2nd day of the month if it is Friday",
		"0 12 1,15 jan,JUL ?":      "at 12:00 on days 1 and 15 of the month in January and July",
		"0 0 * 3-5 *":              "at 00:00 in March to May",
		"10-50/20 * * * *":         "every 20th minute from 10 to 50",
		"0,1,2,3,4 5 * * *":        "at minutes 0, 1, 2, 3 and 4 of hour 5",
		"@daily":                   "at 00:00",
		"@hourly":                  "at minute 0 of every hour",
		"@weekly":                  "at 00:00 on Sunday",
		"@yearly":                  "at 00:00 on day 1 of the month in January",
		"@every 90s":               "every 1m30s, counted from 1970-01-01 UTC",
		"@every 1h":                "every 1h, counted from 1970-01-01 UTC",
		"0 0 12 * * 1-5":           "at 12:00 on Monday to Friday",
		"0 30 9 11 */12 *":         "at 09:30 on day 11 of the month in every 12th month",
		"0 0 29 2 *":               "at 00:00 on day 29 of the month in February",
		"1,2 3,4 * * *":            "at 03:01, 03:02, 04:01 and 04:02",
		"* 7 * * *":                "every minute of hour 7",
		"@at 2026-12-24T18:00:00Z": "once, at 2026-12-24 18:00:00",
		"@every 24h":               "every 24h, counted from 1970-01-01 UTC",
		"0 0 * * 0,6":              "at 00:00 on Sunday and Saturday",
		"30 * * * * *":             "at second 30",
		"0 8-18/2 * * *":           "at minute 0 of every 2nd hour from 8 to 18",
		"0 0 1 1/3 *":              "at 00:00 on day 1 of the month in every 3rd month from January on",
		"@monthly":                 "at 00:00 on day 1 of the month",
		"59 23 31 12 *":            "at 23:59 on day 31 of the month in December",
		"0 0 * * */2":              "at 00:00 on every 2nd day",
		"15,45 10-12,14 * * 1,3,5": "at minutes 15 and 45 of hours 10 to 12 and 14 on Monday, Wednesday and Friday",
	} {
		s, err := ParseSpec(spec, nil)
		require.NoError(t, err, spec)
		require.Equal(t, words, s.Words(), spec)
	}
	require.Equal(t, "never", Schedule{}.Words())
}
