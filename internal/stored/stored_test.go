package stored_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/stored"
)

func TestTextSurvivesJSON(t *testing.T) {
	for text, want := range map[string]string{"": "", "é": "é", "a\xffb": "a\uFFFDb", "\xc3": "\uFFFD"} {
		got := stored.Text(text)
		require.Equal(t, want, got)
		data, err := json.Marshal(got)
		require.NoError(t, err)
		var again string
		require.NoError(t, json.Unmarshal(data, &again))
		require.Equal(t, got, again)
	}
}

func TestExcerptEndsWithAWholeCharacter(t *testing.T) {
	require.Equal(t, "aé", stored.Excerpt("aéé", 4))
	require.Equal(t, "aéé", stored.Excerpt("aéé", 5))
	require.Equal(t, "a", stored.Excerpt("a\xff", 3))
}

func TestShortenMarksWhatIsCut(t *testing.T) {
	require.Equal(t, "aéé", stored.Shorten("aéé", 5))
	require.Equal(t, "a…", stored.Shorten("aéé", 4))
	require.Equal(t, "aé…", stored.Shorten("aééééé", 6))
	require.Equal(t, "\uFFFD", stored.Shorten("\xff", 3))
}

func TestMetadataIsUTF8WithKeys(t *testing.T) {
	require.NoError(t, stored.CheckMetadata(map[string]string{"k": ""}))
	require.ErrorContains(t, stored.CheckMetadata(map[string]string{"": "v"}), "the key of")
	require.ErrorContains(t, stored.CheckMetadata(map[string]string{"k": "\xff"}), `"\xff" is not UTF-8`)
	require.ErrorContains(t, stored.CheckMetadata(map[string]string{"\xff": "v"}), "is not UTF-8")
}

func TestTimesCanBeEncodedInEachZone(t *testing.T) {
	read := func(text string) (at time.Time) {
		require.NoError(t, at.UnmarshalText([]byte(text)))
		return at
	}
	now := time.Now()
	require.Equal(t, now, stored.Time(now))
	for _, at := range []time.Time{{}, now, read("0000-01-01T00:00:00+14:00"), read("9999-12-31T23:59:59-14:00"),
		time.UnixMilli(math.MaxInt64), time.UnixMilli(math.MinInt64)} {
		for _, hours := range []int{-14, 0, 14} {
			_, err := json.Marshal(stored.Time(at).In(time.FixedZone("", hours*60*60)))
			require.NoError(t, err, at)
		}
	}
}
