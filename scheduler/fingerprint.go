package scheduler

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"strings"
)

// A member publishes a fingerprint of each of its declarations in its node among the members. So each member sees, without a further request, which others have
// declared a job differently, and reports that once. A fingerprint has only 32 bits, since there may be 10,000 jobs: one difference in 4,096 stays unnoticed.

// fingerprint is 8 bits of a job's name, 12 bits of its schedule and zone, and 12 bits of its description. 0 stands for an unknown one.
type fingerprint uint32

const (
	nameBits     = fingerprint(0xff) << 24
	scheduleBits = fingerprint(0xfff) << 12
	textBits     = fingerprint(0xfff)
)

// fingerprintOf is the fingerprint of a job's declaration.
func fingerprintOf(name, spec, zone, description string) fingerprint {
	hash := func(parts ...string) fingerprint {
		h := fnv.New64a()
		_, _ = h.Write([]byte(strings.Join(parts, "\x00")))
		sum := h.Sum64()
		return fingerprint(sum ^ sum>>29)
	}
	return hash("name", name)&nameBits | hash(spec, zone)&scheduleBits | hash(description)&textBits
}

// compressFingerprints packs the fingerprints of some jobs, in the order of their keys.
func compressFingerprints(of map[uint32]fingerprint, keys ...[]uint32) string {
	var packed []byte
	for _, some := range keys {
		for _, key := range some {
			packed = binary.BigEndian.AppendUint32(packed, uint32(of[key]))
		}
	}
	return base64.RawStdEncoding.EncodeToString(packed)
}

// decompressFingerprints is the reverse of compressFingerprints. It returns nil for what does not fit the keys: members of other releases have none.
func decompressFingerprints(text string, keys ...[]uint32) map[uint32]fingerprint {
	packed, err := base64.RawStdEncoding.DecodeString(text)
	total := 0
	for _, some := range keys {
		total += len(some)
	}
	if err != nil || len(packed) != 4*total {
		return nil
	}
	of := make(map[uint32]fingerprint, total)
	for _, some := range keys {
		for _, key := range some {
			of[key] = fingerprint(binary.BigEndian.Uint32(packed))
			packed = packed[4:]
		}
	}
	return of
}
