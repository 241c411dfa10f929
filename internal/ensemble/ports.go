package ensemble

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are drawn from below the range that the kernel gives to outgoing
// connections (Linux: 32768 to 60999): there, a connection of anybody's could sit
// on a killed server's port when it is to be restarted, and a client that dials the
// dead port could even be connected to itself.
const firstPort, lastPort = 15000, 31999

// freePorts returns n ports that no process listens on at the moment. Another process may
// still take one before a server does; Start then tries again with others.
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
