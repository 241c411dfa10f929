package zkserver

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/lockstep-go/lockstep/internal/wire"
)

const (
	schemeDigest = "digest"
	schemeIP     = "ip"
	schemeSuper  = "super" // the scheme of the super user's identity; an ACL cannot have it
)

// isAllowed reports whether the ACL grants one of the permissions to one of the
// identities. The super user has all permissions.
func isAllowed(acl []wire.ACL, perms int32, ids []wire.Identity) bool {
	for _, id := range ids {
		if id.Scheme == schemeSuper {
			return true
		}
	}
	for _, a := range acl {
		if a.Perms&perms != 0 && entryMatches(a, ids) {
			return true
		}
	}
	return len(acl) == 0
}

func entryMatches(a wire.ACL, ids []wire.Identity) bool {
	if isWorld(a) {
		return true
	}
	for _, id := range ids {
		if id.Scheme != a.Scheme {
			continue
		}
		if id.ID == a.ID || a.Scheme == schemeIP && inIPRange(id.ID, a.ID) {
			return true
		}
	}
	return false
}

func isWorld(a wire.ACL) bool { return a.Scheme == "world" && a.ID == "anyone" }

// expandACL returns the entries to store for an entry of a request. It returns none for an
// invalid entry.
func expandACL(a wire.ACL, ids []wire.Identity) []wire.ACL {
	if a.Scheme != "auth" {
		if isWorld(a) || a.Scheme == schemeDigest && validDigest(a.ID) || a.Scheme == schemeIP && validIPRange(a.ID) {
			return []wire.ACL{a}
		}
		return nil
	}
	var out []wire.ACL
	for _, id := range ids {
		if id.Scheme == schemeDigest { // an IP address does not count as authentication
			out = append(out, wire.ACL{Perms: a.Perms, Scheme: id.Scheme, ID: id.ID})
		}
	}
	return out
}

// digestOf returns the identity of a client with the credentials "user:password".
func digestOf(credentials []byte) wire.Identity {
	user, _, _ := bytes.Cut(credentials, []byte(":"))
	sum := sha1.Sum(credentials)
	return wire.Identity{Scheme: schemeDigest,
		ID: wire.JavaString(user) + ":" + base64.StdEncoding.EncodeToString(sum[:])}
}

// validDigest reports whether Java's id.split(":").length is 2, which ignores colons at the
// end.
func validDigest(id string) bool { return strings.Count(strings.TrimRight(id, ":"), ":") == 1 }

// redactDigests replaces the hashes of digest entries, for clients without the ADMIN
// permission.
func redactDigests(acl []wire.ACL) []wire.ACL {
	out := make([]wire.ACL, len(acl))
	for i, a := range acl {
		if user, _, found := strings.Cut(a.ID, ":"); found && a.Scheme == schemeDigest {
			a.ID = user + ":x"
		}
		out[i] = a
	}
	return out
}

func validIPRange(expr string) bool {
	_, ok := parseIPRange(expr)
	return ok
}

func inIPRange(address, expr string) bool {
	r, ok := parseIPRange(expr)
	if !ok {
		return false
	}
	a, err := netip.ParseAddr(address)
	return err == nil && r.Contains(a)
}

// parseIPRange parses a.b.c.d or a.b.c.d/bits.
func parseIPRange(expr string) (netip.Prefix, bool) {
	host, bits, cut := strings.Cut(expr, "/")
	a, ok := parseIPv4(host)
	if !ok {
		return netip.Prefix{}, false
	}
	n := 32
	if cut {
		var err error
		if n, err = strconv.Atoi(bits); err != nil || n < 0 || n > 32 {
			return netip.Prefix{}, false
		}
	}
	return netip.PrefixFrom(a, n), true
}

// parseIPv4 parses an IPv4 address. It accepts numbers with leading zeros or a sign, as Java does.
// The server supports no other addresses in ACLs.
func parseIPv4(s string) (a netip.Addr, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) != net.IPv4len {
		return a, false
	}
	var b [net.IPv4len]byte
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || n > 255 {
			return a, false
		}
		b[i] = byte(n)
	}
	return netip.AddrFrom4(b), true
}
