package zktest_test

import (
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockstep-go/lockstep/zktest"
)

// A program, or an example, runs a server of its own. Tests use Start, which
// cleans up after itself.
func Example() {
	srv, err := zktest.New(zktest.WithTick(100 * time.Millisecond))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	link := srv.Link("worker")
	conn, _, err := zk.Connect(srv.Servers(), time.Second, zk.WithDialer(link.Dial), zk.WithLogInfo(false))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	path, err := conn.Create("/job-", []byte("mine"), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	fmt.Println(path, err)
	fmt.Println(srv.Children("/"))
	fmt.Println(srv.Sessions()[0].Ephemerals)
	// Output:
	// /job-0000000000 <nil>
	// [job-0000000000 zookeeper]
	// [/job-0000000000]
}

// The answer to a request is lost: the server has done it, and the client
// cannot know.
func ExampleServer_DropReply() {
	srv, err := zktest.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	link := srv.Link("worker")
	conn, _, err := zk.Connect(srv.Servers(), 10*time.Second, zk.WithDialer(link.Dial), zk.WithLogInfo(false))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	srv.DropReply(1, zktest.Match{Op: zktest.OpCreate, Path: "/job"})
	_, err = conn.Create("/job", nil, 0, zk.WorldACL(zk.PermAll))
	_, created := srv.Node("/job")
	fmt.Println(err)
	fmt.Println("created:", created)
	// Output:
	// zk: connection closed
	// created: true
}
