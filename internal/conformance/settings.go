package conformance

import "strings"

// Setting is how a server is to be configured for some scenes of the conversation.
type Setting struct {
	Name string
	// Properties are Java system properties, as a real server is given them.
	Properties map[string]string
	// Lines are further lines of zoo.cfg.
	Lines []string
	// Recorded is the file of testdata that has a real server's side, for where there is none; "" when there is no such
	// file.
	Recorded string

	scenes []scene
}

// Each calls f with every setting, as a name and a value.
func (s Setting) Each(f func(name, value string)) {
	for name, value := range s.Properties {
		f(name, value)
	}
	for _, line := range s.Lines {
		name, value, _ := strings.Cut(line, "=")
		f(name, value)
	}
}

// The values that scenes of the setting "strict" look for.
const (
	strictBuffer      = 10_000 // jute.maxbuffer
	strictConnections = 12     // maxClientCnxns
	// superCredentials are those of the user whose digest is superDigest.
	superCredentials = "super:test"
	superDigest      = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
)

// Settings are those that servers are compared with: what Lockstep's own tests need, a server out of the box, and one
// with every limit set.
var Settings = []Setting{
	{
		Name:       "usual",
		Properties: map[string]string{"zookeeper.extendedTypesEnabled": "true"},
		Lines:      []string{"4lw.commands.whitelist=*"},
		scenes:     usualScenes,
	},
	{
		Name:       "out of the box",
		Recorded:   "out-of-the-box.golden",
		Properties: map[string]string{"zookeeper.extendedTypesEnabled": "false"},
		Lines:      []string{"4lw.commands.whitelist="},
		scenes: []scene{
			{"no TTL nodes", playNoTTL},
			{"words refused", playWords},
			{"quotas count", playQuotaUsage},
			{"quotas are not enforced", playQuotaLimits},
			{"no super user", playSuper},
			{"no reconfiguration", playReconfig},
		},
	},
	{
		Name:     "strict",
		Recorded: "strict.golden",
		Properties: map[string]string{
			"jute.maxbuffer": "10000", "zookeeper.enforceQuota": "true",
			"zookeeper.DigestAuthenticationProvider.superDigest": superDigest,
		},
		Lines: []string{"4lw.commands.whitelist=ruok, stat", "maxClientCnxns=12", "reconfigEnabled=true"},
		scenes: []scene{
			{"quotas count", playQuotaUsage},
			{"quotas are enforced", playQuotaLimits},
			{"super user", playSuper},
			{"some words", playWords},
			{"no reconfiguration of one server", playReconfig},
			{"buffer", playBuffer},
			{"connections", playConnections},
		},
	},
}

// scene is one subject of the conversation.
type scene struct {
	name string
	play func(*scribe)
}

var usualScenes = []scene{
	{"connect", playConnect},
	{"outset", playOutset},
	{"create", playCreate},
	{"create modes", playModes},
	{"bad paths", playPaths},
	{"null paths", playNulls},
	{"foreign strings", playForeign},
	{"relative paths", playRelative},
	{"delete", playDelete},
	{"data", playData},
	{"acl set", playACLSet},
	{"acl kinds", playACLKinds},
	{"acl refusals", playRefusals},
	{"acl in multi", playRefusalsInMulti},
	{"auth", playAuth},
	{"multi", playMulti},
	{"multi failures", playMultiFailures},
	{"multi modes", playMultiModes},
	{"multiRead", playMultiRead},
	{"watches", playWatches},
	{"watches of a multi", playMultiWatches},
	{"persistent watches", playPersistent},
	{"mixed watches", playMixed},
	{"checkWatches", playCheckWatches},
	{"setWatches", playSetWatches},
	{"setWatches2", playSetWatches2},
	{"sequence", playSequence},
	{"queries", playQueries},
	{"close", playClose},
	{"move", playMove},
	{"refused sessions", playRefusedSessions},
	{"malformed", playMalformed},
	{"large", playLarge},
	{"words", playWords},
	{"watch words", playWatchWords},
	{"trace mask", playTraceMask},
	{"quotas count", playQuotaUsage},
	{"reaping", playReaping},
}
