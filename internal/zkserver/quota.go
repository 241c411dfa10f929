package zkserver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// A quota on /a/b is stored in two nodes: its limits, which an administrator writes, and its usage,
// which the server counts. The usage includes /a/b itself and all nodes below it.
const (
	quotaRoot  = "/zookeeper/quota" // before the path of the quota
	limitsName = "zookeeper_limits"
	usageName  = "zookeeper_stats"
)

// The names of limits and usage. The first two are soft limits: the real server only logs when they
// are exceeded.
const (
	quotaCount, quotaBytes         = "count", "bytes"
	quotaHardCount, quotaHardBytes = "countHardLimit", "byteHardLimit"
)

// quotaValues is the data of a quota's node: numbers by name. A missing number is -1, which means
// no limit.
type quotaValues map[string]int64

// parseQuota parses data such as "count=4,bytes=5=;countHardLimit=10". It returns false if the real
// server's parser throws an exception.
func parseQuota(data []byte) (quotaValues, bool) {
	q := quotaValues{}
	if len(data) == 0 {
		return q, data != nil
	}
	pairs := strings.FieldsFunc(string(data), func(r rune) bool { return r == ',' || r == ';' })
	if len(pairs) > 0 && (data[0] == ',' || data[0] == ';') { // an empty pair, which is allowed only at the end
		return nil, false
	}
	for _, pair := range pairs {
		fields := strings.Split(strings.TrimRight(pair, "="), "=")
		if len(fields) < 2 {
			return nil, false
		}
		value := int64(-1)
		if fields[1] != "" {
			var err error
			if value, err = strconv.ParseInt(fields[1], 10, 64); err != nil {
				return nil, false
			}
		}
		q[fields[0]] = value
	}
	return q, true
}

func (q quotaValues) value(name string) int64 {
	if v, is := q[name]; is {
		return v
	}
	return -1
}

// encode writes count and bytes first, as the oldest servers require, and then the other numbers by
// name.
func (q quotaValues) encode() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s=%d,%s=%d", quotaCount, q.value(quotaCount), quotaBytes, q.value(quotaBytes))
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(q)),
		func(name string) bool { return name == quotaCount || name == quotaBytes })
	if len(others) > 0 {
		b.WriteByte('=') // a second one, at which the oldest servers stop reading
	}
	for _, name := range others {
		fmt.Fprintf(&b, ";%s=%d", name, q[name])
	}
	return []byte(b.String())
}

// quotaOf returns the path of the quota that applies to path: the deepest path with limits at or
// above it. It returns "" if there is none.
func (t *dataTree) quotaOf(path string) string {
	if len(t.quotas) == 0 {
		return ""
	}
	for path != "/" && path != "" {
		if _, is := t.quotas[path]; is {
			return path
		}
		path, _ = wire.SplitPath(path)
	}
	return ""
}

// quotaPath splits the path of a quota's limits or usage into the quota's path and a name. It
// returns false for any other path.
func quotaPath(path string) (on, name string, ok bool) {
	below, found := strings.CutPrefix(path, quotaRoot)
	if !found || !strings.HasPrefix(below, "/") {
		return "", "", false
	}
	on, name = wire.SplitPath(below)
	return on, name, on != "/" && (name == limitsName || name == usageName)
}

// countUsage updates the quotas and their usage by the events of a transaction, in order.
func (t *dataTree) countUsage(events []event) {
	for i, e := range events {
		if e.typ == wire.EventNodeChildrenChanged {
			continue
		}
		if on, name, is := quotaPath(e.path); is {
			t.updateQuota(on, name, e.typ, events[i+1:])
		}
		t.countEvent(e)
	}
}

// updateQuota begins or ends a quota. A new node for its usage gets the usage without the later
// events of the transaction, which are counted after that.
func (t *dataTree) updateQuota(on, name string, typ wire.EventType, later []event) {
	switch {
	case name == limitsName && typ == wire.EventNodeCreated:
		t.quotas[on] = struct{}{}
	case name == limitsName && typ == wire.EventNodeDeleted:
		delete(t.quotas, on)
	case name == usageName && typ == wire.EventNodeCreated:
		usage := quotaValues{quotaCount: 0, quotaBytes: 0}
		if n := t.findNode(on); n != nil {
			n.walkSubtree(func(n *node) { usage.addUsage(1, int64(len(n.data))) })
		}
		for _, e := range later {
			if e.path == on || strings.HasPrefix(e.path, on+"/") {
				usage.addUsage(-nodesOf(e.typ), -e.growth)
			}
		}
		t.writeUsage(on, usage)
	}
}

func (q quotaValues) addUsage(count, bytes int64) {
	q[quotaCount] = q.value(quotaCount) + count
	q[quotaBytes] = q.value(quotaBytes) + bytes
}

// countEvent counts an event for the quota that applies to its path. It does not change usage that
// does not parse; the real server exits then.
func (t *dataTree) countEvent(e event) {
	on := t.quotaOf(e.path)
	if on == "" {
		return
	}
	if n := t.findNode(quotaRoot + on + "/" + usageName); n != nil {
		if usage, ok := parseQuota(n.data); ok {
			usage.addUsage(nodesOf(e.typ), e.growth)
			t.writeUsage(on, usage)
		}
	}
}

// writeUsage writes a quota's usage. This is not a transaction: it changes neither version nor
// zxid, and triggers no watch.
func (t *dataTree) writeUsage(on string, usage quotaValues) {
	if n := t.findNode(quotaRoot + on + "/" + usageName); n != nil {
		data := usage.encode()
		t.dataBytes += int64(len(data) - len(n.data))
		n.data = data
	}
}

// nodesOf returns by how many nodes an event changes the tree.
func nodesOf(typ wire.EventType) int64 {
	switch typ {
	case wire.EventNodeCreated:
		return 1
	case wire.EventNodeDeleted:
		return -1
	}
	return 0
}

// checkQuota refuses a write that would exceed a hard limit, if quotas are enforced. It compares
// each part of a multi with the usage before the multi, as the real server does.
func (t *dataTree) checkQuota(path string, bytes, count int64) wire.Code {
	if !t.enforceQuotas {
		return wire.OK
	}
	on := t.quotaOf(path)
	limitsNode, usageNode := t.findNode(quotaRoot+on+"/"+limitsName), t.findNode(quotaRoot+on+"/"+usageName)
	if on == "" || limitsNode == nil || usageNode == nil {
		return wire.OK
	}
	limits, readable := parseQuota(limitsNode.data)
	usage, counted := parseQuota(usageNode.data)
	if !readable || !counted {
		return wire.MarshallingError
	}
	exceeds := func(used, more, limit int64) bool { return more != 0 && limit > -1 && used+more > limit }
	if exceeds(usage.value(quotaCount), count, limits.value(quotaHardCount)) ||
		exceeds(usage.value(quotaBytes), bytes, limits.value(quotaHardBytes)) {
		return wire.QuotaExceeded
	}
	return wire.OK
}
