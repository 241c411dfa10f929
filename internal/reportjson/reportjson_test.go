package reportjson

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTimesThatJSONCannotHold: no time breaks an encoder.
func TestTimesThatJSONCannotHold(t *testing.T) {
	for _, far := range []int64{9000000000000000, -9000000000000000, 1 << 62, -1 << 62} {
		require.Zero(t, Time(time.UnixMilli(far)))
	}
	late, err := time.Parse(time.RFC3339, "9999-12-31T23:59:59-14:00")
	require.NoError(t, err)
	require.Zero(t, Time(late), "it is in the year 10000 in UTC")
	require.Zero(t, Time(time.Time{}))
	at := time.UnixMilli(9000000000)
	require.Equal(t, at.UTC(), Time(at))
}

func TestTextsAreExact(t *testing.T) {
	require.Nil(t, ExactBytes("plain"))
	require.Equal(t, []byte("\xff"), ExactBytes("\xff"))
	require.Empty(t, ErrorText(nil))
	require.Equal(t, "why", ErrorText(errors.New("why")))
}

func TestJoinedIsOneObject(t *testing.T) {
	data, err := json.Marshal(Joined{map[string]int{"a": 1}, struct{}{}, NewItem([]byte("\xff"))})
	require.NoError(t, err)
	require.Equal(t, `{"a":1,"item":"\ufffd","item_base64":"/w=="}`, string(data))
	_, err = json.Marshal(Joined{1})
	require.ErrorContains(t, err, "only objects")
	_, err = json.Marshal(Joined{make(chan int)})
	require.Error(t, err)
}
