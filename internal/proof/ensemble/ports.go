package ensemble

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// firstPort and lastPort bound the ports that are drawn. They are below the range from
// which the kernel takes ports for outgoing connections (Linux: 32768 to 60999). In that
// range another process's connection could have a killed server's port when the server is
// restarted, and a client that dials the dead port could be connected to itself.
const firstPort, lastPort = 15000, 31999

// portLock keeps a port from other ensembles, also from those of other processes, while a server
// that was killed does not listen on the port. It is the UDP socket of that number, which no server
// uses.
type portLock = net.PacketConn

// lockPorts locks n ports that no process listens on. If another process takes one nevertheless
// before the server does, Start tries again with other ports. The caller closes the locks.
func lockPorts(n int) (ports []int, locks []portLock, err error) {
	for tries := 0; len(ports) < n; tries++ {
		if tries == 100*n {
			closeAll(locks)
			return nil, nil, errors.New("ensemble: no free port on 127.0.0.1")
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		lock, err := net.ListenPacket("udp", loopback(port))
		if err != nil {
			continue
		}
		ln, err := net.Listen("tcp", loopback(port))
		if err != nil {
			_ = lock.Close()
			continue
		}
		ln.Close()
		ports, locks = append(ports, port), append(locks, lock)
	}
	return ports, locks, nil
}

func closeAll(locks []portLock) {
	for _, lock := range locks {
		_ = lock.Close()
	}
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
