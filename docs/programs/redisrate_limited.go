package main

import (
	"context"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// limited asks again until it is permitted. Nobody has a place in a line.
func limited(ctx context.Context, client *redis.Client, call func(context.Context) error) error {
	limiter := redis_rate.NewLimiter(client)
	for {
		answer, err := limiter.Allow(ctx, "geocoder", redis_rate.PerSecond(5))
		if err != nil {
			return err
		}
		if answer.Allowed > 0 {
			return call(ctx)
		}
		select {
		case <-time.After(answer.RetryAfter):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
