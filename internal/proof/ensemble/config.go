package ensemble

import (
	"errors"
	"fmt"
	"time"
)

// Config says how many servers to run and how. The zero value is usable.
type Config struct {
	// Servers is the number of servers that vote; the default is 3. A single
	// one runs standalone. With Observers they are 7 at most.
	Servers int
	// Observers is the number of servers that follow the leader and do not vote. Their indexes come
	// after those of the servers that vote, of which there must be 3.
	Observers int
	// ObserverMasters lets each observer get its packets from a follower instead of the leader
	// (observerMasterPort); see MasterLink and Master. It needs Links.
	ObserverMasters bool
	// Tick is the server's time unit: session timeouts lie between 2 and 20 of
	// it. The default is 500 ms.
	Tick time.Duration
	// InitLimit and SyncLimit bound, in ticks, how long a follower may take to
	// join and how far it may fall behind before its leader drops it. The
	// default of both is 20.
	InitLimit, SyncLimit int
	// ContainerCheck is how often the servers look for empty containers and outdated
	// TTL nodes. The default is one second; ZooKeeper's own default is 60.
	ContainerCheck time.Duration
	// Links runs the connections between servers through proxies, for Hold,
	// CutOff and Isolate.
	Links bool
	// NoFsync lets the servers write the transaction log without fsync. A server that is
	// killed loses nothing; a machine that loses power may lose transactions.
	NoFsync bool
	// HeapMB is each server's largest heap in MiB. The default is 256.
	HeapMB int
	// DiskMB, if not 0, puts each server's transaction log on a file system of its own with this
	// size in MiB, for FillDisk. It needs Linux and root. Other processes do not see these file
	// systems, and they end with the servers.
	DiskMB int
	// Properties are further Java system properties, such as jute.maxbuffer.
	Properties map[string]string
	// Lines are further lines of zoo.cfg, such as maxClientCnxns=60. They come after the usual
	// lines.
	Lines []string
	// Authority, if not nil, lets the servers also listen with TLS, at SecureAddr: with
	// certificates that it signs for 127.0.0.1, and only for clients with certificates that it has
	// signed.
	Authority *Authority
	// Patience bounds a start. The default is two minutes.
	Patience time.Duration
}

const mostServers = 7

// Validate returns an error that names the first value that cannot work.
func (c Config) Validate() error {
	switch {
	case c.Servers < 0 || c.Servers+c.Observers > mostServers:
		return fmt.Errorf("ensemble: Servers is %d, want 1 to %d, observers included", c.Servers, mostServers)
	case c.Observers < 0 || c.Observers > 0 && c.Servers != 0 && c.Servers < 3:
		return fmt.Errorf("ensemble: Observers is %d with %d Servers, want 3 servers or more that vote",
			c.Observers, c.Servers)
	case c.ObserverMasters && (c.Observers == 0 || !c.Links):
		return errors.New("ensemble: ObserverMasters needs Observers and Links")
	case c.Tick < 0 || c.Tick > 0 && c.Tick < 10*time.Millisecond:
		return fmt.Errorf("ensemble: Tick is %v, want at least 10ms", c.Tick)
	case c.InitLimit < 0 || c.SyncLimit < 0:
		return fmt.Errorf("ensemble: InitLimit %d and SyncLimit %d may not be negative", c.InitLimit, c.SyncLimit)
	case c.ContainerCheck < 0 || c.ContainerCheck > 0 && c.ContainerCheck < time.Millisecond:
		return fmt.Errorf("ensemble: ContainerCheck is %v, want at least 1ms", c.ContainerCheck)
	case c.HeapMB < 0 || c.HeapMB > 0 && c.HeapMB < 64:
		return fmt.Errorf("ensemble: HeapMB is %d, want at least 64", c.HeapMB)
	case c.DiskMB < 0 || c.DiskMB > 0 && c.DiskMB < 16:
		return fmt.Errorf("ensemble: DiskMB is %d, want at least 16", c.DiskMB)
	case c.Patience < 0:
		return fmt.Errorf("ensemble: Patience is %v, may not be negative", c.Patience)
	}
	return nil
}

func (c Config) withDefaults() Config {
	setDefault(&c.Servers, 3)
	setDefault(&c.Tick, 500*time.Millisecond)
	setDefault(&c.InitLimit, 20)
	setDefault(&c.SyncLimit, 20)
	setDefault(&c.ContainerCheck, time.Second)
	setDefault(&c.HeapMB, 256)
	setDefault(&c.Patience, 2*time.Minute)
	return c
}

func (c Config) total() int { return c.Servers + c.Observers }

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
