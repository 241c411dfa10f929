package config

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/internal/stored"
)

// Record is one value of the history.
type Record struct {
	// Version is the value's: the transaction that wrote it.
	Version int64 `json:"version"`
	// Written is the time of the write, by the clock of the ensemble's leader.
	Written time.Time `json:"written,omitzero"`
	// By is the Identity of the client that wrote it, Note the text of WithNote. The servers
	// do not check either.
	By   string `json:"by,omitempty"`
	Note string `json:"note,omitempty"`
	// Foreign is true for a value that another program wrote, such as zkCli. Such a program writes
	// no record: the next Set makes one, and until then History adds the node's present value.
	Foreign bool `json:"foreign,omitempty"`
	// Data are the value's bytes.
	Data []byte `json:"-"`
	// Err is why the record has no data; it wraps framework.ErrBadRecord or framework.ErrNewer, or
	// framework.ErrTooLarge for a foreign value that was too large for a record. Then only Version,
	// Written and Foreign are set.
	Err error `json:"-"`
}

// MarshalJSON returns Data as "text" if it is UTF-8, else in base64 as "bytes", or the text of Err
// as "error".
func (r Record) MarshalJSON() ([]byte, error) {
	type fields Record
	r.Written = reportjson.Time(r.Written)
	v := struct {
		fields
		Text  *string `json:"text,omitempty"`
		Bytes []byte  `json:"bytes,omitempty"`
		Error string  `json:"error,omitempty"`
	}{fields: fields(r), Error: reportjson.ErrorText(r.Err)}
	if utf8.Valid(r.Data) && r.Err == nil {
		text := string(r.Data)
		v.Text = &text
	} else {
		v.Bytes = r.Data
	}
	return json.Marshal(v)
}

const recordVersion = 1

// storedRecord is the data of a record's node. One transaction writes a value and creates its
// record, so the creation of the record's node has the value's version and time.
type storedRecord struct {
	ID      string    `json:"id"`
	By      string    `json:"by,omitempty"`
	Note    string    `json:"note,omitempty"`
	Text    *string   `json:"text,omitempty"`  // the value, if it is text, and takes less so
	Bytes   []byte    `json:"bytes,omitempty"` // else
	Foreign int64     `json:"foreign,omitempty"`
	Written time.Time `json:"written,omitzero"`  // of a foreign value, whose version is Foreign
	Omitted int       `json:"omitted,omitempty"` // the size of a foreign value for which the transaction had no room
}

func (r *storedRecord) setData(data []byte) {
	if utf8.Valid(data) && escapedLength(data) <= base64.StdEncoding.EncodedLen(len(data)) {
		text := string(data)
		r.Text = &text
		return
	}
	r.Bytes = data
}

// escapedLength returns an upper bound of the length of a text in JSON.
func escapedLength(text []byte) int {
	n := len(text)
	for _, b := range text {
		switch {
		case b == '"', b == '\\', b == '\n', b == '\r', b == '\t':
			n++
		case b < ' ', b == 0x7f:
			n += len(`\u0000`) - 1
		}
	}
	return n
}

func (r storedRecord) encode() ([]byte, error) { return recipe.Unknown(nil).Encode(recordVersion, r) }

func decodeStored(data []byte) (r storedRecord, err error) {
	_, err = recipe.Decode(data, recordVersion, &r)
	return r, err
}

// decodeRecord reads a record's node.
func decodeRecord(data []byte, stat framework.Stat) Record {
	out := Record{Version: stat.Czxid, Written: stat.Ctime.UTC()}
	r, err := decodeStored(data)
	if err != nil {
		out.Err = err
		return out
	}
	out.By, out.Note, out.Data = r.By, r.Note, r.Bytes
	if r.Text != nil {
		out.Data = []byte(*r.Text)
	}
	if r.Omitted != 0 {
		out.Err = fmt.Errorf("%w: the value had %d bytes, and its record did not fit into the transaction that "+
			"replaced it", framework.ErrTooLarge, r.Omitted)
	}
	if r.Foreign != 0 {
		out.Version, out.Written, out.Foreign = r.Foreign, stored.Time(r.Written).UTC(), true
	}
	return out
}
