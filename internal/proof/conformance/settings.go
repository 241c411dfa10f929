package conformance

import "strings"

// Setting is a configuration of a server, and the topics of the conversation with such a server.
type Setting struct {
	Name string
	// Properties are the Java system properties of a real server.
	Properties map[string]string
	// Lines are further lines of zoo.cfg.
	Lines []string
	// Recorded is the file of testdata with a real server's answers, for tests without a real
	// server. It is "" if there is no such file.
	Recorded string

	topics []topic
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

// The values that topics of the setting "strict" check.
const (
	strictBuffer      = 10_000 // jute.maxbuffer
	strictConnections = 12     // maxClientCnxns
	// superCredentials are the credentials of the user whose digest is superDigest.
	superCredentials = "super:test"
	superDigest      = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
)

// Settings are the settings with which servers are compared: the one that Lockstep's own tests
// need, ZooKeeper's defaults, and one with every limit set.
var Settings = []Setting{
	{
		Name:       "usual",
		Properties: map[string]string{"zookeeper.extendedTypesEnabled": "true"},
		Lines:      []string{"4lw.commands.whitelist=*"},
		topics:     usualTopics,
	},
	{
		Name:       "out of the box",
		Recorded:   "out-of-the-box.golden",
		Properties: map[string]string{"zookeeper.extendedTypesEnabled": "false"},
		Lines:      []string{"4lw.commands.whitelist="},
		topics: []topic{
			{"no TTL nodes", talkNoTTL},
			{"words refused", talkWords},
			{"quotas count", talkQuotaUsage},
			{"quotas are not enforced", talkQuotaLimits},
			{"no super user", talkSuper},
			{"no reconfiguration", talkReconfig},
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
		topics: []topic{
			{"quotas count", talkQuotaUsage},
			{"quotas are enforced", talkQuotaLimits},
			{"super user", talkSuper},
			{"some words", talkWords},
			{"no reconfiguration of one server", talkReconfig},
			{"buffer", talkBuffer},
			{"connections", talkConnections},
		},
	},
}

// topic is one part of the conversation.
type topic struct {
	name string
	talk func(*transcript)
}

var usualTopics = []topic{
	{"connect", talkConnect},
	{"outset", talkOutset},
	{"create", talkCreate},
	{"create modes", talkModes},
	{"bad paths", talkPaths},
	{"null paths", talkNulls},
	{"foreign strings", talkForeign},
	{"relative paths", talkRelative},
	{"delete", talkDelete},
	{"data", talkData},
	{"acl set", talkACLSet},
	{"acl kinds", talkACLKinds},
	{"acl refusals", talkRefusals},
	{"acl in multi", talkRefusalsInMulti},
	{"auth", talkAuth},
	{"multi", talkMulti},
	{"multi failures", talkMultiFailures},
	{"multi modes", talkMultiModes},
	{"multiRead", talkMultiRead},
	{"watches", talkWatches},
	{"watches of a multi", talkMultiWatches},
	{"watches of unreadable nodes", talkUnreadableWatches},
	{"persistent watches", talkPersistent},
	{"mixed watches", talkMixed},
	{"checkWatches", talkCheckWatches},
	{"setWatches", talkSetWatches},
	{"setWatches2", talkSetWatches2},
	{"sequence", talkSequence},
	{"queries", talkQueries},
	{"close", talkClose},
	{"move", talkMove},
	{"refused sessions", talkRefusedSessions},
	{"malformed", talkMalformed},
	{"large", talkLarge},
	{"words", talkWords},
	{"watch words", talkWatchWords},
	{"trace mask", talkTraceMask},
	{"quotas count", talkQuotaUsage},
	{"reaping", talkReaping},
}
