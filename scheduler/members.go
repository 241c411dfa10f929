package scheduler

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// member is one of the schedulers of the cluster, as it describes itself in its node: an ephemeral
// one in <path>/members, which is there as long as it takes jobs.
type member struct {
	node    string // the node's name
	id      string
	labels  map[string]string
	keys    []uint32 // of the jobs of Placement Spread that it has, sorted
	leads   []uint32 // of the jobs of OnLeader that it has, sorted; for reports only
	unknown recipe.Unknown
}

const memberVersion = 1

// memberRecord is the stored form of a member.
type memberRecord struct {
	ID     string            `json:"id"`
	Jobs   string            `json:"jobs,omitempty"`
	Leads  string            `json:"leader_jobs,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// encode returns the stored form of a member. The jobs' keys are sorted, so that their differences
// are short: 10,000 of them take less than 50 KB.
func (m member) encode() ([]byte, error) {
	return m.unknown.Encode(memberVersion,
		memberRecord{ID: m.id, Jobs: compressKeys(m.keys), Leads: compressKeys(m.leads), Labels: m.labels})
}

func compressKeys(keys []uint32) string {
	var packed []byte
	var last uint32
	for _, key := range keys {
		packed = binary.AppendUvarint(packed, uint64(key-last))
		last = key
	}
	return base64.RawStdEncoding.EncodeToString(packed)
}

// decodeMember reads the stored form of a member. Its error wraps framework.ErrNewer or
// framework.ErrBadRecord.
func decodeMember(node string, data []byte) (member, error) {
	var r memberRecord
	unknown, err := recipe.Decode(data, memberVersion, &r)
	if err != nil {
		return member{}, err
	}
	keys, err := decompressKeys(r.Jobs)
	leads, errLeads := decompressKeys(r.Leads)
	if err = errors.Join(err, errLeads); err != nil {
		return member{}, fmt.Errorf("%w: %w", framework.ErrBadRecord, err)
	}
	return member{node: node, id: r.ID, labels: r.Labels, keys: keys, leads: leads, unknown: unknown}, nil
}

func decompressKeys(text string) ([]uint32, error) {
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

// ownerAmong is the member that a job of Placement Spread belongs to: of those that can run it, the
// one with the highest weight. Members that see the same members agree. When a member comes or
// goes, no job moves between others.
func (j *job) ownerAmong(members []member) string {
	var best string
	var most uint64
	key := jobKey(j.Name)
	for _, m := range members {
		if !m.canRun(j, key) {
			continue
		}
		w := placementWeight(m.id, j.Name)
		if best == "" || w > most || w == most && placementWeight(m.node, j.Name) > placementWeight(best, j.Name) {
			// several members may have one id
			best, most = m.node, w
		}
	}
	return best
}

// placementWeight is the weight of a member for a job, by rendezvous hashing.
func placementWeight(member, job string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(member))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(job))
	return mixBits(h.Sum64())
}

// jobKey is the hash of a job's name that members publish.
func jobKey(job string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(job))
	return h.Sum32()
}

// canRun reports whether a member has a job and its labels.
func (m member) canRun(j *job, key uint32) bool {
	_, has := slices.BinarySearch(m.keys, key)
	return has && hasLabels(m.labels, j.Labels)
}

// jobKeys are the keys of the jobs of a placement that a member with these labels can run, sorted.
func jobKeys(jobs map[string]*job, placement Placement, labels map[string]string) []uint32 {
	keys := make([]uint32, 0, len(jobs))
	for name, j := range jobs {
		if j.Placement == placement && hasLabels(labels, j.Labels) {
			keys = append(keys, jobKey(name))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// hasLabels reports whether a member's labels include all of a job's.
func hasLabels(labels, wanted map[string]string) bool {
	for name, value := range wanted {
		if got, ok := labels[name]; !ok || got != value {
			return false
		}
	}
	return true
}
