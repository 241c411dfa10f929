package scheduler

import (
	"hash/fnv"
	"maps"
	"slices"
)

// ownerAmong is the member that a job of Placement Spread belongs to: of those that can run it, the one with the
// highest weight. All who see the same members agree; when one comes or goes, no job moves between others.
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

// mixBits spreads a hash over all bits: FNV's highest ones hardly depend on the last bytes. It is the finalizer
// of MurmurHash3.
func mixBits(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
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
