// Command leader is a service for Kubernetes, with as many replicas as you like: one of them bills,
// and when it ends, another one goes on. It answers probes at :8080, stops in order at SIGTERM, and
// gives the lead away then.
//
//	LOCKSTEP_SERVERS=zk-0:2181,zk-1:2181,zk-2:2181 go run ./examples/leader
//	curl localhost:8080/readyz
//
// docs/service.md has the manifest.
package main

import (
	"cmp"
	"context"
	"log"
	"os"
	"time"

	"github.com/lockstep-go/lockstep"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

func main() {
	config, err := framework.ConfigFromEnv()
	if err != nil {
		log.Fatal(err)
	}
	client, err := framework.New(config)
	if err != nil {
		log.Fatal(err)
	}
	err = lockstep.Run(context.Background(), client, []lockstep.Part{
		lockstep.Lead(election.New(client, "/billing"), bill),
	}, lockstep.WithProbes(cmp.Or(os.Getenv("HEALTH_ADDRESS"), ":8080")))
	if err != nil {
		log.Fatal(err)
	}
}

// bill is the leader's work. Its context ends before another replica can lead.
func bill(ctx context.Context, term *election.Term) error {
	log.Print("billing, with token ", term.Token())
	for {
		select {
		case <-time.After(time.Minute):
			log.Print("the bills of a minute")
		case <-ctx.Done():
			return nil
		}
	}
}
