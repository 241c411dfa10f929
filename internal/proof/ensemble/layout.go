package ensemble

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// layout has the ports and the files of one ensemble.
type layout struct {
	dir                              string
	client, quorum, election, secure []int
	master                           []int // where the servers that vote listen for observers
	locks                            []portLock
}

func newLayout(servers int) (*layout, error) {
	ports, locks, err := lockPorts(5 * servers)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ensemble-")
	if err != nil {
		closeAll(locks)
		return nil, fmt.Errorf("ensemble: data directory: %w", err)
	}
	return &layout{
		dir:      dir,
		client:   ports[:servers],
		quorum:   ports[servers : 2*servers],
		election: ports[2*servers : 3*servers],
		secure:   ports[3*servers : 4*servers],
		master:   ports[4*servers:],
		locks:    locks,
	}, nil
}

// remove removes the files, and gives the ports free.
func (l *layout) remove() error {
	closeAll(l.locks)
	return os.RemoveAll(l.dir)
}

func (l *layout) data(i int) string     { return filepath.Join(l.dir, strconv.Itoa(i+1)) }
func (l *layout) disk(i int) string     { return l.data(i) + "-disk" }
func (l *layout) confPath(i int) string { return l.data(i) + ".cfg" }
func (l *layout) logPath(i int) string  { return l.data(i) + ".log" }

// write creates server i's data directory and configuration. links may be nil.
func (l *layout) write(i int, c Config, links *links) error {
	if err := os.MkdirAll(l.data(i), 0o755); err != nil {
		return fmt.Errorf("ensemble: data directory: %w", err)
	}
	id := filepath.Join(l.data(i), "myid")
	if err := os.WriteFile(id, []byte(strconv.Itoa(i+1)), 0o644); err != nil {
		return fmt.Errorf("ensemble: server's id: %w", err)
	}
	if err := os.WriteFile(l.confPath(i), []byte(l.conf(i, c, links)), 0o644); err != nil {
		return fmt.Errorf("ensemble: server's configuration: %w", err)
	}
	if c.Authority != nil {
		return l.writeTLS(i, c.Authority)
	}
	return nil
}

func (l *layout) conf(i int, c Config, links *links) string {
	lines := []string{
		"dataDir=" + l.data(i),
		"clientPort=" + strconv.Itoa(l.client[i]),
		"clientPortAddress=127.0.0.1",
		"tickTime=" + millis(c.Tick),
		"initLimit=" + strconv.Itoa(c.InitLimit),
		"syncLimit=" + strconv.Itoa(c.SyncLimit),
		"maxClientCnxns=0",
		"admin.enableServer=false",
		"4lw.commands.whitelist=*",
	}
	if c.Authority != nil {
		lines = append(lines, l.tlsConf(i)...)
	}
	if c.DiskMB > 0 {
		lines = append(lines, "dataLogDir="+l.disk(i))
	}
	if len(l.client) > 1 {
		for k := range l.client {
			peer := l.peer(i, k, links)
			if k >= c.Servers {
				peer += ":observer"
			}
			lines = append(lines, peer)
		}
	}
	if i >= c.Servers {
		lines = append(lines, "peerType=observer")
	}
	if c.ObserverMasters {
		lines = append(lines, "observerMasterPort="+l.masterPort(i, c, links))
	}
	return strings.Join(append(lines, c.Lines...), "\n") + "\n"
}

// masterPort returns the port at which a server that votes listens for observers, or to which an
// observer connects. ZooKeeper expects the same port on all machines, so an observer has a link
// that leads to a follower.
func (l *layout) masterPort(i int, c Config, links *links) string {
	if i < c.Servers {
		return strconv.Itoa(l.master[i])
	}
	_, port, _ := strings.Cut(links.master[i-c.Servers].Addr(), ":")
	return port
}

// peer returns the line of server i's zoo.cfg that describes server k, which may be i.
func (l *layout) peer(i, k int, links *links) string {
	quorum, election := loopback(l.quorum[k]), strconv.Itoa(l.election[k])
	if links != nil && k != i {
		quorum = links.quorum[i][k].Addr()
		_, election, _ = strings.Cut(links.election[i][k].Addr(), ":")
	}
	return fmt.Sprintf("server.%d=%s:%s", k+1, quorum, election)
}

func (l *layout) javaArgs(i int, c Config, classpath string) []string {
	args := []string{
		"-Xmx" + strconv.Itoa(c.HeapMB) + "m",
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", // start quickly
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dzookeeper.extendedTypesEnabled=true", // TTL nodes
		"-Dznode.container.checkIntervalMs=" + millis(c.ContainerCheck),
	}
	if c.NoFsync {
		args = append(args, "-Dzookeeper.forceSync=no")
	}
	for name, value := range c.Properties {
		args = append(args, "-D"+name+"="+value)
	}
	return append(args, "-cp", classpath,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", l.confPath(i))
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
