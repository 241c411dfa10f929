package config

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// keysCodec decodes the keys of a tree into a struct, over a copy of the default.
type keysCodec[T any] struct{ fallback func() T }

func (keysCodec[T]) Encode(T) ([]byte, error) {
	return nil, fmt.Errorf("a tree is not written as a whole")
}

func (c keysCodec[T]) Decode(data []byte) (value T, err error) {
	var keys map[string]string
	if err := json.Unmarshal(data, &keys); err != nil {
		return value, err
	}
	value = c.fallback()
	return value, setByKeys(reflect.ValueOf(&value).Elem(), keyTree(keys), "")
}

// keyNode is a key: its value, or nil if it has none, and the keys below it by their names.
type keyNode struct {
	value *string
	below map[string]*keyNode
}

// keyTree splits keys at their dots.
func keyTree(keys map[string]string) *keyNode {
	root := &keyNode{}
	for key, value := range keys {
		n := root
		for part := range strings.SplitSeq(key, ".") {
			if n.below == nil {
				n.below = map[string]*keyNode{}
			}
			if n.below[part] == nil {
				n.below[part] = &keyNode{}
			}
			n = n.below[part]
		}
		n.value = &value
	}
	return root
}

// relaxedName is the form of a name that Spring compares: maxRate, max-rate and MAX_RATE have the
// same form.
func relaxedName(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}

// relaxedKey returns a key in the form that is the same for all styles of the names of t's fields.
// The names of a map's entries stay as they are.
func relaxedKey(t reflect.Type, key string) string {
	parts := strings.Split(key, ".")
	for i, part := range parts {
		for t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case t != nil && t.Kind() == reflect.Struct:
			parts[i] = relaxedName(part)
			t = typeOfFieldLike(t, parts[i])
		case t != nil && t.Kind() == reflect.Map:
			t = t.Elem()
		default:
			t = nil // no field has the key
		}
	}
	return strings.Join(parts, ".")
}

// typeOfFieldLike returns the type of the field of t that a key sets whose relaxed name this is, or
// nil if there is none.
func typeOfFieldLike(t reflect.Type, relaxed string) reflect.Type {
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "" && field.Anonymous && field.Type.Kind() == reflect.Struct:
			if found := typeOfFieldLike(field.Type, relaxed); found != nil {
				return found
			}
		case relaxedName(cmp.Or(name, field.Name)) == relaxed:
			return field.Type
		}
	}
	return nil
}

// addMissingKeys adds to the keys of a directory those of later directories that it does not have.
// Of keys with the same form by relax, the spelling of the first directory stays.
func addMissingKeys(keys, later map[string]string, relax func(key string) string) {
	spelling := map[string]string{} // of keys, and of what they are below, by their relaxed forms
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		parts, relaxed := strings.Split(key, "."), strings.Split(relax(key), ".")
		for n := range parts {
			spelling[strings.Join(relaxed[:n+1], ".")] = strings.Join(parts[:n+1], ".")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(later)) {
		parts, relaxed := strings.Split(key, "."), strings.Split(relax(key), ".")
		respelled := key
		for n := len(parts); n > 0; n-- {
			if known, ok := spelling[strings.Join(relaxed[:n], ".")]; ok {
				respelled = strings.Join(append([]string{known}, parts[n:]...), ".")
				break
			}
		}
		if _, present := keys[respelled]; !present {
			keys[respelled] = later[key]
		}
	}
}

// childLike returns the key below n whose name is like a field's, or nil.
func (n *keyNode) childLike(field, path string) (found *keyNode, err error) {
	wanted := relaxedName(field)
	for name, child := range n.below {
		if relaxedName(name) == wanted {
			if found != nil {
				return nil, fmt.Errorf("two keys for %s%s", path, field)
			}
			found = child
		}
	}
	return found, nil
}

// setByKeys sets the fields that the keys name, and leaves the other fields. It copies what a
// pointer refers to before it writes, since that may belong to the default.
func setByKeys(v reflect.Value, n *keyNode, path string) error {
	if v.Kind() == reflect.Pointer {
		fresh := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			fresh.Elem().Set(v.Elem())
		}
		v.Set(fresh)
		return setByKeys(fresh.Elem(), n, path)
	}
	if text, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if n.value == nil {
			return nil
		}
		if v.Kind() == reflect.Map {
			v.Set(reflect.MakeMap(v.Type()))
		} else {
			v.SetZero() // what it refers to belongs to the default, and to values that were shown before
		}
		if err := text.UnmarshalText([]byte(*n.value)); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return setFields(v, n, path)
	case reflect.Map:
		return setEntries(v, n, path)
	}
	if n.value == nil {
		return nil
	}
	if err := setText(v, *n.value); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func setFields(v reflect.Value, n *keyNode, path string) error {
	prefix := path
	if prefix != "" {
		prefix += "."
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
			continue
		case name == "" && field.Anonymous && field.Type.Kind() == reflect.Struct:
			if err := setFields(v.Field(i), n, path); err != nil {
				return err
			}
			continue
		case name == "":
			name = field.Name
		}
		child, err := n.childLike(name, prefix)
		if err != nil {
			return err
		}
		if child != nil {
			if err := setByKeys(v.Field(i), child, prefix+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// setEntries replaces a map by a copy with the keys' entries added.
func setEntries(v reflect.Value, n *keyNode, path string) error {
	if v.Type().Key().Kind() != reflect.String {
		return fmt.Errorf("%s: a map needs keys of text", path)
	}
	fresh := reflect.MakeMap(v.Type())
	for entries := v.MapRange(); entries.Next(); {
		fresh.SetMapIndex(entries.Key(), entries.Value())
	}
	for name, child := range n.below {
		key := reflect.ValueOf(name).Convert(v.Type().Key())
		value := reflect.New(v.Type().Elem()).Elem()
		if before := v.MapIndex(key); before.IsValid() {
			value.Set(before)
		}
		if err := setByKeys(value, child, path+"."+name); err != nil {
			return err
		}
		fresh.SetMapIndex(key, value)
	}
	v.Set(fresh)
	return nil
}

// setText sets a value from the text of one key. The elements of a slice are separated by commas.
func setText(v reflect.Value, text string) error {
	if v.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		v.SetInt(int64(d))
		return err
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return nil
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return err
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(i)
		return err
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		u, err := strconv.ParseUint(text, 10, v.Type().Bits())
		v.SetUint(u)
		return err
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(text, v.Type().Bits())
		v.SetFloat(f)
		return err
	case reflect.Slice:
		parts := strings.Split(text, ",")
		list := reflect.MakeSlice(v.Type(), len(parts), len(parts))
		for i := range parts {
			text := strings.TrimSpace(parts[i])
			if err := setByKeys(list.Index(i), &keyNode{value: &text}, strconv.Itoa(i)); err != nil {
				return err
			}
		}
		v.Set(list)
		return nil
	}
	return fmt.Errorf("a field of type %v cannot be set by a key", v.Type())
}
