package scheduler

import (
	"encoding/json"
	"fmt"
	"time"
)

// fields are those of a stored JSON object. What this release knows is taken out; the rest is kept, and
// written back with the object.
type fields map[string]json.RawMessage

// take moves a field into a value, if it is there.
func (f fields) take(name string, into any) error {
	raw, ok := f[name]
	if !ok {
		return nil
	}
	delete(f, name)
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// takeTime moves a time, which must be one that can be written again.
func (f fields) takeTime(name string, into *time.Time) error {
	if err := f.take(name, into); err != nil {
		return err
	}
	*into = into.UTC()
	if y := into.Year(); !into.IsZero() && (y < 1970 || y > 9999) {
		return fmt.Errorf("%s: the year %d is not between 1970 and 9999", name, y)
	}
	return nil
}

// with returns the kept fields and these; zero times and nil values are left out.
func (f fields) with(known map[string]any) ([]byte, error) {
	all := make(map[string]any, len(f)+len(known))
	for name, raw := range f {
		all[name] = raw
	}
	for name, v := range known {
		if t, ok := v.(time.Time); v == nil || ok && t.IsZero() {
			continue
		}
		all[name] = v
	}
	return json.Marshal(all)
}

// given is a value, or nil if it is the zero value.
func given[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}
