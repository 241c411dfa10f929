package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

var errNoSales = errors.New("nothing was sold")

// locks lets one member run a job, by a key in Redis that is kept for a minute at least: clocks differ.
type locks struct{ *redsync.Redsync }

func (l locks) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	mutex := l.NewMutex("job "+key, redsync.WithTries(1), redsync.WithExpiry(time.Minute))
	return held{}, mutex.LockContext(ctx)
}

type held struct{}

func (held) Unlock(context.Context) error { return nil }

// nightly tries three times more, since gocron does not. A run by hand goes through this member, and
// is lost with it.
func nightly(ctx context.Context, client *redis.Client, write func(context.Context) error) error {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		return err
	}
	scheduler, err := gocron.NewScheduler(gocron.WithLocation(berlin),
		gocron.WithDistributedLocker(locks{redsync.New(goredis.NewPool(client))}))
	if err != nil {
		return err
	}
	job, err := scheduler.NewJob(gocron.CronJob("0 3 * * *", false), gocron.NewTask(func() {
		for attempt := range 4 {
			if err := write(ctx); err == nil || errors.Is(err, errNoSales) {
				return
			}
			select {
			case <-time.After(time.Second << attempt):
			case <-ctx.Done():
				return
			}
		}
	}), gocron.WithName("report"), gocron.WithSingletonMode(gocron.LimitModeReschedule))
	if err != nil {
		return err
	}
	http.HandleFunc("POST /report", func(w http.ResponseWriter, r *http.Request) {
		if err := job.RunNow(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	scheduler.Start()
	<-ctx.Done()
	return scheduler.Shutdown()
}
