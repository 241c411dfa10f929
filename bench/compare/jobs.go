//go:build linux

package main

import (
	"fmt"
	"regexp"
	"slices"
)

// The libraries that are compared.
const (
	lockstepPeer  = "Lockstep"
	watchdogPeer  = "Lockstep, watchdog"
	redislockPeer = "redislock"
	endlessPeer   = "redislock, a context without an end"
	orderedPeer   = "redislock, by arrival"
	curatorPeer   = "Curator"
	kazooPeer     = "kazoo"
	zkPeer        = "zk.Lock"
	etcdPeer      = "etcd"
	redsyncPeer   = "redsync"
	postgresPeer  = "Postgres"
	riverPeer     = "River"
	redisPeer     = "Redis commands"
	barePeer      = "bare requests"
)

// The servers that the work is done on.
const (
	zk1      = "ZooKeeper 1"
	zk3      = "ZooKeeper 3"
	etcd1    = "etcd 1"
	redis1   = "Redis 1"
	postgres = "PostgreSQL 1"
)

// The units of figures. Of times, less is better.
const (
	perSecond    = "a second"
	milliseconds = "ms"
)

// work is one thing that all libraries do.
type work struct {
	name, title, unit string
}

var works = []work{
	{"uncontended", "Acquire and release a free lock", perSecond},
	{"contended", "32 clients take turns at one lock", perSecond},
	{"longest", "32 clients take turns at one lock for 12 s: the longest that one waits", milliseconds},
	{"goroutines", "32 goroutines or threads of one client take turns at one lock", perSecond},
	{"handover", "A lock passes through 1,000 waiters", perSecond},
	{"next", "1,000 of 20 clients wait for a lock: time from a release until the next one holds", milliseconds},
	{"crash", "A lock's holder is killed: time until the next one holds, with a session timeout of 4 s", milliseconds},
	{"election", "A leader resigns: time until the next one leads", milliseconds},
	{"queue", "Put, take and acknowledge items of 100 bytes, one after the other", perSecond},
	{"counter", "32 clients add to one number", perSecond},
	{"watchers", "A change until 1,000 watchers of 20 clients have seen it", milliseconds},
	{"idle", "1,000 idle clients: processor time of the servers in a second", milliseconds},
}

// job is one row of the table.
type job struct {
	work, servers, peer string
}

func (j job) String() string { return fmt.Sprintf("%s/%s/%s", j.work, j.servers, j.peer) }

// against is the row that a row is compared with.
func (j job) against() job {
	switch {
	case j.peer == redsyncPeer, j.peer == endlessPeer, j.peer == orderedPeer:
		return job{j.work, redis1, redislockPeer}
	case j.servers == zk3:
		return job{j.work, zk3, lockstepPeer}
	}
	return job{j.work, zk1, lockstepPeer}
}

// jobs are all rows, in the order of works.
var jobs = slices.Concat(
	rows("uncontended", zk1, lockstepPeer, barePeer, curatorPeer, kazooPeer, zkPeer),
	rows("uncontended", zk3, lockstepPeer, barePeer, curatorPeer, kazooPeer, zkPeer),
	rows("uncontended", etcd1, etcdPeer),
	rows("uncontended", redis1, redislockPeer, endlessPeer, redsyncPeer),
	rows("uncontended", postgres, postgresPeer),
	rows("contended", zk1, lockstepPeer, barePeer, curatorPeer, kazooPeer, zkPeer),
	rows("contended", zk3, lockstepPeer, barePeer, curatorPeer, kazooPeer, zkPeer),
	rows("contended", etcd1, etcdPeer),
	rows("contended", redis1, redislockPeer, endlessPeer, redsyncPeer),
	rows("contended", postgres, postgresPeer),
	rows("longest", zk1, lockstepPeer, zkPeer),
	rows("longest", etcd1, etcdPeer),
	rows("longest", redis1, redislockPeer, orderedPeer, redsyncPeer),
	rows("longest", postgres, postgresPeer),
	rows("goroutines", zk1, lockstepPeer, barePeer, curatorPeer, zkPeer),
	rows("handover", zk1, lockstepPeer, curatorPeer, kazooPeer, zkPeer),
	rows("handover", etcd1, etcdPeer),
	rows("handover", redis1, redislockPeer, redsyncPeer),
	rows("handover", postgres, postgresPeer),
	rows("next", zk1, lockstepPeer, curatorPeer, kazooPeer, zkPeer),
	rows("next", etcd1, etcdPeer),
	rows("next", redis1, redislockPeer, redsyncPeer),
	rows("next", postgres, postgresPeer),
	rows("crash", zk1, lockstepPeer, watchdogPeer, curatorPeer, kazooPeer, zkPeer),
	rows("crash", etcd1, etcdPeer),
	rows("crash", redis1, redislockPeer, redsyncPeer),
	rows("crash", postgres, postgresPeer),
	rows("election", zk1, lockstepPeer, curatorPeer, kazooPeer),
	rows("election", etcd1, etcdPeer),
	rows("queue", zk1, lockstepPeer, curatorPeer, kazooPeer),
	rows("queue", redis1, redisPeer),
	rows("queue", postgres, postgresPeer, riverPeer),
	rows("counter", zk1, lockstepPeer, curatorPeer, kazooPeer),
	rows("counter", etcd1, etcdPeer),
	rows("counter", redis1, redisPeer),
	rows("counter", postgres, postgresPeer),
	rows("watchers", zk1, lockstepPeer, barePeer, curatorPeer, kazooPeer),
	rows("watchers", etcd1, etcdPeer),
	rows("watchers", redis1, redisPeer),
	rows("watchers", postgres, postgresPeer),
	rows("idle", zk1, lockstepPeer, barePeer, curatorPeer, kazooPeer),
	rows("idle", etcd1, etcdPeer),
	rows("idle", redis1, redislockPeer, redsyncPeer),
)

func rows(work, servers string, peers ...string) (all []job) {
	for _, p := range peers {
		all = append(all, job{work, servers, p})
	}
	return all
}

// selectJobs returns the rows whose names match, and those that they are compared with.
func selectJobs(pattern *regexp.Regexp) (selected []job) {
	wanted := map[job]bool{}
	for _, j := range jobs {
		if pattern.MatchString(j.String()) {
			wanted[j], wanted[j.against()] = true, true
		}
	}
	for _, j := range jobs {
		if wanted[j] {
			selected = append(selected, j)
		}
	}
	return selected
}

func workOf(name string) work {
	return works[slices.IndexFunc(works, func(w work) bool { return w.name == name })]
}
