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

// freePorts returns n ports that no process listens on. If another process takes one
// before the server does, Start tries again with other ports.
func freePorts(n int) ([]int, error) {
	var ports []int
	var held []net.Listener
	defer func() {
		for _, ln := range held {
			ln.Close()
		}
	}()
	for tries := 0; len(ports) < n; tries++ {
		if tries == 100*n {
			return nil, errors.New("ensemble: no free port on 127.0.0.1")
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		ln, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		held = append(held, ln)
		ports = append(ports, port)
	}
	return ports, nil
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
