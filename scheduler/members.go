package scheduler

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/lockstep-go/lockstep/internal/recipe"
)

// member is one of the schedulers of the cluster, as it describes itself in its node: an ephemeral one in
// <path>/members, which is there as long as it takes jobs.
type member struct {
	node    string // the node's name
	id      string
	labels  map[string]string
	keys    []uint32 // of the jobs of Placement Spread that it has, sorted
	unknown recipe.Unknown
}

const memberVersion = 1

// memberRecord is what is stored of a member.
type memberRecord struct {
	ID     string            `json:"id"`
	Jobs   string            `json:"jobs,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// encode writes what is stored of a member. The jobs' keys are sorted, so that their differences are short:
// 10,000 of them take some 40 KB.
func (m member) encode() ([]byte, error) {
	var packed []byte
	var last uint32
	for _, key := range m.keys {
		packed = binary.AppendUvarint(packed, uint64(key-last))
		last = key
	}
	return m.unknown.Encode(memberVersion, memberRecord{ID: m.id, Jobs: base64.RawStdEncoding.EncodeToString(packed), Labels: m.labels})
}

// decodeMember reads what is stored of a member. Its error wraps ErrNewerState or ErrBadState.
func decodeMember(node string, data []byte) (member, error) {
	var r memberRecord
	unknown, err := recipe.Decode(data, memberVersion, &r)
	if err != nil {
		return member{}, err
	}
	keys, err := decompress(r.Jobs)
	if err != nil {
		return member{}, fmt.Errorf("%w: %w", ErrBadState, err)
	}
	return member{node: node, id: r.ID, labels: r.Labels, keys: keys, unknown: unknown}, nil
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

// ownerAmong is the member that a job of Placement Spread belongs to: of those that can run it, the one with the
// highest weight. Members that see the same members agree. When a member comes or goes, no job moves between others.
func (j *job) ownerAmong(members []member) string {
	var best string
	var most uint64
	key := jobKey(j.Name)
	for _, m := range members {
		if !m.canRun(j, key) {
			continue
		}
		w := weight(m.id, j.Name)
		if best == "" || w > most || w == most && weight(m.node, j.Name) > weight(best, j.Name) { // some may be called the same
			best, most = m.node, w
		}
	}
	return best
}

// weight is how much a job leans towards a member.
func weight(member, job string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(member))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(job))
	return mixBits(h.Sum64())
}

// jobKey is what a member publishes of a job's name.
func jobKey(job string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(job))
	return h.Sum32()
}

// canRun reports whether a member has a job and its labels.
func (m member) canRun(j *job, key uint32) bool {
	for name, value := range j.Labels {
		if got, ok := m.labels[name]; !ok || got != value {
			return false
		}
	}
	_, has := slices.BinarySearch(m.keys, key)
	return has
}

// jobKeys are the keys of the jobs that are spread, sorted.
func jobKeys(jobs map[string]*job) []uint32 {
	keys := make([]uint32, 0, len(jobs))
	for name := range maps.Keys(jobs) {
		if jobs[name].Placement == Spread {
			keys = append(keys, jobKey(name))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
