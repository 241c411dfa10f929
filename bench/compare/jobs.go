package main

import (
	"fmt"
	"regexp"
	"slices"
)

// The libraries that are compared.
const (
	lockstepPeer  = "Lockstep"
	redislockPeer = "redislock"
	curatorPeer   = "Curator"
	kazooPeer     = "kazoo"
	zkPeer        = "zk.Lock"
	etcdPeer      = "etcd"
	redsyncPeer   = "redsync"
	postgresPeer  = "Postgres"
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
	{"uncontended", "acquire and release a free lock", perSecond},
	{"contended", "32 clients take turns at one lock", perSecond},
}

// job is one row of the table.
type job struct {
	work, servers, peer string
}

func (j job) String() string { return fmt.Sprintf("%s/%s/%s", j.work, j.servers, j.peer) }

// against is the row that a row is compared with.
func (j job) against() job {
	switch {
	case j.servers == redis1:
		return job{j.work, redis1, redislockPeer}
	case j.servers == zk3:
		return job{j.work, zk3, lockstepPeer}
	}
	return job{j.work, zk1, lockstepPeer}
}

// jobs are all rows, in the order of works.
var jobs = slices.Concat(
	rows("uncontended", zk1, lockstepPeer, barePeer, zkPeer),
	rows("uncontended", zk3, lockstepPeer, barePeer, zkPeer),
	rows("uncontended", etcd1, etcdPeer),
	rows("uncontended", redis1, redislockPeer, redsyncPeer),
	rows("uncontended", postgres, postgresPeer),
	rows("contended", zk1, lockstepPeer, barePeer, zkPeer),
	rows("contended", zk3, lockstepPeer, barePeer, zkPeer),
	rows("contended", etcd1, etcdPeer),
	rows("contended", redis1, redislockPeer, redsyncPeer),
	rows("contended", postgres, postgresPeer),
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
