package scheduler

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// member is one of the schedulers of the cluster, as it describes itself in its node: an ephemeral one in
// <path>/members, which is there as long as it takes jobs.
type member struct {
	node   string // the node's name
	id     string
	labels map[string]string
	keys   []uint32 // of the jobs of Placement Spread that it has, sorted
	rest   jsonFields
}

const memberVersion = 1

const (
	maxLabels = 64
	maxLabel  = 256
)

// encode writes what is stored of a member. The jobs' keys are sorted, so that their differences are short:
// 10,000 of them take some 40 KB.
func (m member) encode() ([]byte, error) {
	var packed []byte
	var last uint32
	for _, key := range m.keys {
		packed = binary.AppendUvarint(packed, uint64(key-last))
		last = key
	}
	known := map[string]any{"v": memberVersion, "id": m.id, "jobs": nilIfZero(base64.RawStdEncoding.EncodeToString(packed))}
	if len(m.labels) > 0 {
		known["labels"] = m.labels
	}
	return m.rest.withFields(known)
}

// decodeMember reads what is stored of a member. Its error wraps ErrNewerState or ErrBadState.
func decodeMember(node string, data []byte) (member, error) {
	m := member{node: node}
	f, err := openRecord(data, memberVersion)
	if err != nil {
		return member{}, err
	}
	var packed string
	m.rest = f
	err = errors.Join(f.takeField("id", &m.id), f.takeField("labels", &m.labels), f.takeField("jobs", &packed))
	if err == nil {
		m.keys, err = decompress(packed)
	}
	if err != nil {
		return member{}, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	return m, nil
}

func decompress(text string) ([]uint32, error) {
	packed, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	var keys []uint32
	var last uint64
	for len(packed) > 0 {
		step, n := binary.Uvarint(packed)
		if n <= 0 || step > 1<<32-1-last || step == 0 && len(keys) > 0 {
			return nil, errors.New("jobs: not a rising row of keys")
		}
		last += step
		keys, packed = append(keys, uint32(last)), packed[n:]
	}
	return keys, nil
}

// validLabels refuses labels that nobody could tell apart or store.
func validLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return fmt.Errorf("%d labels are given, at most %d are taken", len(labels), maxLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		switch value := labels[name]; {
		case name == "":
			return fmt.Errorf("the label with the value %q has no name", value)
		case len(name) > maxLabel || len(value) > maxLabel:
			return fmt.Errorf("the label %.20q has a name of %d bytes and a value of %d, at most %d are taken", name, len(name), len(value), maxLabel)
		}
	}
	return nil
}
