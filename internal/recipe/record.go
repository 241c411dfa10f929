package recipe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// versionField is the name of the field that has a record's version.
const versionField = "v"

// Unknown are the fields of a stored JSON object that this release does not know. Encode writes
// them back with the object, so that an older release does not remove what a newer one has written.
// A nil map has no fields.
type Unknown map[string]json.RawMessage

// Decode decodes a record into the struct that into points to. The record's version is in the field
// "v" and must be at least 1. If it is higher than newest, Decode decodes the fields that it can,
// and its error wraps framework.ErrNewer. Any other error wraps framework.ErrBadRecord. Decode
// compares the names of fields exactly: a field "Name" of another release is not the known field
// "name".
func Decode(data []byte, newest int, into any) (Unknown, error) {
	fields, err := parseFields(data)
	if err != nil {
		return nil, err
	}
	version := 0
	if raw, ok := fields[versionField]; ok {
		if err := json.Unmarshal(raw, &version); err != nil {
			return nil, fmt.Errorf("%w: its version: %w", framework.ErrBadRecord, err)
		}
		delete(fields, versionField)
	}
	err = fields.moveInto(into)
	switch {
	case version > newest:
		return fields, fmt.Errorf("%w: it has version %d, this release reads versions up to %d", framework.ErrNewer,
			version, newest)
	case version < 1:
		return nil, fmt.Errorf("%w: it has no version", framework.ErrBadRecord)
	case err != nil:
		return nil, err
	}
	return fields, nil
}

// DecodeFields decodes an object without a version, such as one within a record. The error wraps
// framework.ErrBadRecord.
func DecodeFields(data []byte, into any) (Unknown, error) {
	fields, err := parseFields(data)
	if err == nil {
		err = fields.moveInto(into)
	}
	if err != nil {
		return nil, err
	}
	return fields, nil
}

func parseFields(data []byte) (fields Unknown, err error) {
	if err = json.Unmarshal(data, &fields); err == nil && fields == nil {
		err = errors.New("it is null")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", framework.ErrBadRecord, err)
	}
	return fields, nil
}

// moveInto decodes the fields that the struct has, and removes them from u. It compares names
// exactly, where package json ignores case.
func (u Unknown) moveInto(into any) error {
	known := make(Unknown, len(u))
	for _, name := range fieldNames(reflect.TypeOf(into).Elem()) {
		if raw, ok := u[name]; ok {
			known[name] = raw
			delete(u, name)
		}
	}
	object, err := json.Marshal(known)
	if err == nil {
		err = json.Unmarshal(object, into)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", framework.ErrBadRecord, err)
	}
	return nil
}

// Encode returns a record: the version, then the fields of the struct known in their order, then
// the unknown fields. Struct tags say which fields are left out when they are empty.
func (u Unknown) Encode(version int, known any) ([]byte, error) {
	return u.encode(fmt.Appendf(nil, "{%q:%d", versionField, version), known)
}

// EncodeFields returns an object without a version.
func (u Unknown) EncodeFields(known any) ([]byte, error) { return u.encode([]byte("{"), known) }

// encode appends the fields to the beginning of an object, and ends the object.
func (u Unknown) encode(object []byte, known any) ([]byte, error) {
	fields, err := marshalPlainly(known)
	if err != nil {
		return nil, err
	}
	object = appendFields(object, fields[1:len(fields)-1])
	if len(u) == 0 { // nearly always
		return append(object, '}'), nil
	}
	for _, name := range slices.Sorted(maps.Keys(u)) {
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		object = appendFields(object, slices.Concat(quoted, []byte(":"), u[name]))
	}
	return append(object, '}'), nil
}

// marshalPlainly is json.Marshal without the escapes for HTML, with which <, > and & take six
// bytes.
func marshalPlainly(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func appendFields(object, fields []byte) []byte {
	if len(fields) > 0 && len(object) > 1 {
		object = append(object, ',')
	}
	return append(object, fields...)
}

// fieldNames are the names by which package json knows a struct's fields.
func fieldNames(t reflect.Type) []string {
	if known, ok := knownNames.Load(t); ok {
		return known.([]string)
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && !f.Anonymous && name != "-" {
			if name == "" {
				name = f.Name
			}
			names = append(names, name)
		}
	}
	knownNames.Store(t, names)
	return names
}

// knownNames are the results of fieldNames, by type.
var knownNames sync.Map
