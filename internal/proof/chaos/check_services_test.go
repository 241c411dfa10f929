//go:build linux

package chaos

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/config"
)

// serviceChecker checks values, ids, instances and members, one segment after the other. From one
// segment to the next it keeps what each process was shown last, which ids were given, and the
// sums.
type serviceChecker struct {
	settingFloor         int64                       // the setting's version that all had when they rested
	settingVersion       map[string]int64            // that a process was shown last
	tally                int64                       // at the latest rest
	tallyShown           map[string]int64            // that a process was shown last
	tallyUncertain       map[int64]bool              // numbers that a write with an unknown outcome may still write
	treeShown            map[string]int64            // that a process was shown last
	given                map[string]map[int64]uint64 // a bitmap of ids, in words of 64, by path
	lastID               map[string]int64            // by path and process
	added, addsUncertain int64                       // to the counter, since the beginning
	counter              int64                       // at the latest rest
	viewZxid             map[string]int64            // the newest transaction that a process's watch has reported
	memberNumbers        map[string]map[string]int64 // what a process was shown last of members, by process and id
	drained              map[string]int64            // when a member's drain function has ended last
}

func newServiceChecker() *serviceChecker {
	return &serviceChecker{settingVersion: map[string]int64{}, tallyShown: map[string]int64{},
		tallyUncertain: map[int64]bool{}, treeShown: map[string]int64{},
		given: map[string]map[int64]uint64{}, lastID: map[string]int64{}, viewZxid: map[string]int64{},
		memberNumbers: map[string]map[string]int64{}, drained: map[string]int64{}}
}

// check returns the violations of a segment.
func (c *serviceChecker) check(byPath map[string][]*operation, s segment) (wrong []error) {
	shown := map[string][]shownEvent{}
	for _, e := range s.shown {
		shown[e.Path] = append(shown[e.Path], e)
	}
	at := s.atRest
	wrong = append(wrong, c.checkSetting(byPath[settingPath], shown[settingPath], at)...)
	wrong = append(wrong, c.checkTally(byPath[tallyPath], shown[tallyPath], at)...)
	wrong = append(wrong, c.checkTree(shown[treePath])...)
	wrong = append(wrong, c.checkIDs(sequencePath, byPath[sequencePath])...)
	wrong = append(wrong, c.checkIDs(slotsPath, byPath[slotsPath])...)
	wrong = append(wrong, c.checkCounter(byPath[counterPath], at)...)
	for _, e := range shown[instancesPath] {
		if _, there := e.Listed[staticInstance]; !there {
			wrong = append(wrong, fmt.Errorf("%s: %s was shown a list without %s, which always exists: %v",
				instancesPath, e.process, staticInstance, e.Listed))
		}
	}
	wrong = append(wrong, c.checkMemberNumbers(shown[groupPath])...)
	wrong = append(wrong, c.checkViews(shown[groupPath])...)
	return append(wrong, c.checkDrains(byPath[groupPath], shown[groupPath])...)
}

// checkSetting checks the setting: no reader is shown an older version after a newer one, a text
// that must be refused, or a text whose write has failed; a text is written once; of two writes
// over the same version, one succeeds.
func (c *serviceChecker) checkSetting(calls []*operation, shown []shownEvent, at *servicesAtRest) (wrong []error) {
	fail := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf(settingPath+": "+format, args...))
	}
	texts, versions := map[int64]string{}, map[string]int64{}
	for _, e := range shown {
		if e.Source == string(config.FromDefault) {
			continue
		}
		if !strings.HasPrefix(e.Item, goodPrefix) {
			fail("%s was shown %q, which is to be refused", e.process, e.Item)
		}
		if text, known := texts[e.Token]; known && text != e.Item {
			fail("version %d was shown as %q and %q", e.Token, text, e.Item)
		}
		if version, known := versions[e.Item]; known && version != e.Token {
			fail("%q was written twice, as version %d and %d", e.Item, version, e.Token)
		}
		texts[e.Token], versions[e.Item] = e.Item, e.Token
		if e.Source != string(config.FromServers) {
			continue // a file may be old
		}
		if newest := max(c.settingVersion[e.process], c.settingFloor); e.Token < newest {
			fail("%s was shown version %d after %d", e.process, e.Token, newest)
		}
		c.settingVersion[e.process] = e.Token
	}
	over := map[int64]*operation{}
	for _, op := range calls {
		_, seen := versions[op.request.Item]
		if op.abandoned && seen {
			fail("%s has failed, and its %q was written", op.id, op.request.Item)
		}
		if version := op.request.Token; version != 0 && op.succeeded() {
			if other := over[version]; other != nil {
				fail("%s and %s have both written over version %d", other.id, op.id, version)
			}
			over[version] = op
		}
	}
	if at != nil {
		c.settingFloor = at.settingVersion
	}
	return append(wrong, checkUnknownWrites(settingPath, calls)...)
}

// othersUntilUnknown is how many other writes of a value it takes at least until the record of a
// write may be gone: the last 20 records are kept, of which Set needs 19 to be of others, and a
// write leaves two at most.
const othersUntilUnknown = 10

// checkUnknownWrites checks that the outcome of a write is unknown before its context has ended
// only if enough others have written meanwhile.
func checkUnknownWrites(path string, calls []*operation) (wrong []error) {
	for _, op := range calls {
		if !op.uncertain || op.end.Error == "" {
			continue
		}
		others := 0
		for _, o := range calls {
			if o != op && o.request.At < op.end.At && (o.end.At == 0 || o.end.At > op.request.At) {
				others++
			}
		}
		if others < othersUntilUnknown {
			wrong = append(wrong, fmt.Errorf("%s: %s has an unknown outcome beside %d other writes: %s", path, op.id,
				others, op.end.Error))
		}
	}
	return wrong
}

// succeeded reports whether a call was carried out, and its process knows that.
func (op *operation) succeeded() bool { return op.grant.At > 0 && !op.uncertain && !op.abandoned }

// checkTally checks the tally: one call has written each number, no write that has succeeded is
// lost, and no write that has failed was carried out.
func (c *serviceChecker) checkTally(calls []*operation, shown []shownEvent, at *servicesAtRest) (wrong []error) {
	fail := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf(tallyPath+": "+format, args...))
	}
	writers, refused := map[int64]*operation{}, map[string]bool{}
	for _, op := range calls {
		n := op.request.Number
		switch {
		case op.succeeded() && writers[n] != nil:
			fail("%s and %s have both written %d", writers[n].id, op.id, n)
		case op.succeeded():
			writers[n] = op
		case op.uncertain:
			c.tallyUncertain[n] = true
		case op.abandoned:
			refused[op.request.Item] = true
		}
	}
	for _, e := range shown {
		if e.Number < c.tallyShown[e.process] {
			fail("%s was shown %d after %d", e.process, e.Number, c.tallyShown[e.process])
		}
		c.tallyShown[e.process] = e.Number
		if w := writers[e.Number]; w != nil && w.request.Item != e.Item {
			fail("%s was shown %d by %s, and %s has written it", e.process, e.Number, e.Item, w.request.Item)
		}
		if refused[e.Item] {
			fail("%s was shown %d by %s, whose write has failed", e.process, e.Number, e.Item)
		}
	}
	wrong = append(wrong, checkUnknownWrites(tallyPath, calls)...)
	if at == nil {
		return wrong
	}
	for n := c.tally + 1; n <= at.tally; n++ {
		if writers[n] == nil && !c.tallyUncertain[n] {
			fail("no call has written %d", n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(writers)) {
		if n <= c.tally || n > at.tally {
			fail("%s has written %d, and the tally went from %d to %d", writers[n].id, n, c.tally, at.tally)
		}
	}
	c.tally = at.tally
	maps.DeleteFunc(c.tallyUncertain, func(n int64, _ bool) bool { return n <= at.tally })
	return wrong
}

// checkTree checks that a tree shows all keys as they were at one moment, and no older moment after
// a newer one.
func (c *serviceChecker) checkTree(shown []shownEvent) (wrong []error) {
	for _, e := range shown {
		if len(e.Numbers) != len(treeKeys) || slices.Min(e.Numbers) != slices.Max(e.Numbers) {
			wrong = append(wrong, fmt.Errorf("%s: %s was shown %v, which no transaction has written", treePath,
				e.process, e.Numbers))
			continue
		}
		if e.Numbers[0] < c.treeShown[e.process] {
			wrong = append(wrong, fmt.Errorf("%s: %s was shown %d after %d", treePath, e.process, e.Numbers[0],
				c.treeShown[e.process]))
		}
		c.treeShown[e.process] = e.Numbers[0]
	}
	return wrong
}

// checkIDs checks that no id is given twice, and that the ids of one process rise.
func (c *serviceChecker) checkIDs(path string, calls []*operation) (wrong []error) {
	given := c.given[path]
	if given == nil {
		given = map[int64]uint64{}
		c.given[path] = given
	}
	for _, op := range calls {
		for pair := range slices.Chunk(op.end.Numbers, 2) { // also of a call that has failed after some
			last := path + " " + op.process
			if before, some := c.lastID[last]; some && pair[0] <= before {
				wrong = append(wrong, fmt.Errorf("%s: %s gets %d after %d", path, op.id, pair[0], before))
			}
			c.lastID[last] = pair[1]
			for id := pair[0]; id <= pair[1]; id++ {
				word, bit := id>>6, uint64(1)<<(id&63)
				if given[word]&bit != 0 {
					return append(wrong, fmt.Errorf("%s: %s gets %d, which was given before", path, op.id,
						word<<6+int64(bits.TrailingZeros64(bit))))
				}
				given[word] |= bit
			}
		}
	}
	return wrong
}

// checkCounter checks that each add that has succeeded counts once, that none that has failed
// counts, and that each returns the sum at its moment.
func (c *serviceChecker) checkCounter(calls []*operation, at *servicesAtRest) (wrong []error) {
	var done []*operation
	for _, op := range calls {
		switch {
		case op.succeeded():
			done = append(done, op)
			c.added++
		case op.uncertain:
			c.addsUncertain++
		}
	}
	slices.SortFunc(done, func(a, b *operation) int { return int(a.grant.Number - b.grant.Number) })
	began := int64(0) // when the latest add with a smaller sum began
	for i, op := range done {
		if i > 0 && done[i-1].grant.Number == op.grant.Number {
			wrong = append(wrong, fmt.Errorf("%s: %s and %s both return %d", counterPath, done[i-1].id, op.id,
				op.grant.Number))
		}
		if op.grant.At < began {
			wrong = append(wrong, fmt.Errorf("%s: %s returns %d before an add with a smaller sum began", counterPath,
				op.id, op.grant.Number))
		}
		began = max(began, op.request.At)
	}
	if at == nil {
		return wrong
	}
	if len(done) > 0 && (done[0].grant.Number <= c.counter || done[len(done)-1].grant.Number > at.counter) {
		wrong = append(wrong, fmt.Errorf("%s: adds return %d to %d, and the counter went from %d to %d", counterPath,
			done[0].grant.Number, done[len(done)-1].grant.Number, c.counter, at.counter))
	}
	if at.counter < c.added || at.counter > c.added+c.addsUncertain {
		wrong = append(wrong, fmt.Errorf(
			"%s: it is %d after %d adds that have succeeded and %d whose outcome is unknown", counterPath, at.counter,
			c.added, c.addsUncertain))
	}
	c.counter = at.counter
	return wrong
}

// checkMemberNumbers checks that no process is shown an older number of a member after a newer one.
// The numbers of each member rise.
func (c *serviceChecker) checkMemberNumbers(shown []shownEvent) (wrong []error) {
	for _, e := range shown {
		if e.Kind != "" {
			continue
		}
		for id, number := range e.Listed {
			if before := c.memberNumbers[e.process][id]; number < before {
				wrong = append(wrong, fmt.Errorf("%s: %s was shown %d of %s after %d", e.Path, e.process,
					number, id, before))
			}
		}
		c.memberNumbers[e.process] = e.Listed
	}
	return wrong
}

// checkViews checks that a watch reports changes in the order of their transactions.
func (c *serviceChecker) checkViews(shown []shownEvent) (wrong []error) {
	for _, e := range shown {
		for _, zxid := range e.Numbers {
			if zxid < c.viewZxid[e.process] {
				wrong = append(wrong, fmt.Errorf("%s: %s was shown transaction %d after %d", groupPath, e.process, zxid,
					c.viewZxid[e.process]))
			}
			c.viewZxid[e.process] = zxid
		}
	}
	return wrong
}

// checkDrains checks that a drain is acknowledged only after a drain function of the member has
// ended. A function that had ended before an earlier request was withdrawn does not count.
func (c *serviceChecker) checkDrains(calls []*operation, shown []shownEvent) (wrong []error) {
	ended := map[string][]int64{}
	for id, at := range c.drained {
		ended[id] = []int64{at}
	}
	for _, e := range shown {
		if e.Kind == kindDrained {
			ended[e.Item] = append(ended[e.Item], e.At)
			c.drained[e.Item] = max(c.drained[e.Item], e.At)
		}
	}
	for _, op := range calls {
		if op.request.Kind != kindDrain || !op.succeeded() {
			continue
		}
		since := int64(0) // when the latest withdrawal began that had succeeded before
		for _, w := range calls {
			if w.request.Kind == kindUncordon && w.request.Item == op.request.Item && w.succeeded() &&
				w.grant.At < op.request.At {
				since = max(since, w.request.At)
			}
		}
		if !slices.ContainsFunc(ended[op.request.Item],
			func(at int64) bool { return at >= since && at <= op.grant.At }) {
			wrong = append(wrong, fmt.Errorf(
				"%s: %s has drained %s, and no drain function has ended since the latest request was withdrawn",
				groupPath, op.id, op.request.Item))
		}
	}
	return wrong
}
