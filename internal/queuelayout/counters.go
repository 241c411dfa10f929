package queuelayout

import (
	"errors"
	"strconv"
	"strings"
)

// lineMark ends the data of <path>/in while producers stand in line.
const lineMark = " line"

func EncodeIn(in uint32, line bool) []byte {
	data := strconv.AppendUint(nil, uint64(in), 10)
	if line {
		data = append(data, lineMark...)
	}
	return data
}

// DecodeIn reads what EncodeIn has written.
func DecodeIn(data []byte) (in uint32, line bool, err error) {
	text, line := strings.CutSuffix(string(data), lineMark)
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, false, errCount
	}
	return uint32(n), line, nil
}

// DecodePlaces reads a number of places.
func DecodePlaces(data []byte) (int, error) {
	n, err := strconv.ParseUint(string(data), 10, 31)
	if err != nil {
		return 0, errCount
	}
	return int(n), nil
}

// errCount is returned for data that are not a count.
var errCount = errors.New("not a count")

// DecodeBucket reads the number of the present bucket.
func DecodeBucket(data []byte) (int64, error) {
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil || n < 0 {
		return 0, errCount
	}
	return n, nil
}
