package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

type Flags struct {
	NewCheckout bool `json:"newCheckout"`
	Percent     int  `json:"percent"`
}

func (f Flags) validate() error {
	if f.Percent < 0 || f.Percent > 100 {
		return errors.New("percent must be from 0 to 100")
	}
	return nil
}

// followFlags keeps flags up to date until ctx ends. A watch may end, for example when the servers
// have compacted what it asks for: then it begins again with a read.
func followFlags(ctx context.Context, client *clientv3.Client, flags *atomic.Pointer[Flags]) {
	take := func(value []byte) {
		next := &Flags{}
		if err := errors.Join(json.Unmarshal(value, next), next.validate()); err != nil {
			log.Print("keeping the last flags: ", err)
			return
		}
		flags.Store(next)
	}
	for ctx.Err() == nil {
		now, err := client.Get(ctx, "/shop/flags")
		if err != nil {
			log.Print(err)
			time.Sleep(time.Second)
			continue
		}
		for _, kv := range now.Kvs {
			take(kv.Value)
		}
		for changes := range client.Watch(clientv3.WithRequireLeader(ctx), "/shop/flags",
			clientv3.WithRev(now.Header.Revision+1)) {
			for _, event := range changes.Events {
				if event.Type == clientv3.EventTypePut {
					take(event.Kv.Value)
				} else {
					flags.Store(&Flags{})
				}
			}
		}
	}
}

func checkout(flags *atomic.Pointer[Flags], customer int) string {
	if f := flags.Load(); f.NewCheckout && customer%100 < f.Percent {
		return "the new checkout"
	}
	return "the checkout"
}
