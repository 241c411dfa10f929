package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

type (
	Mail      struct{ To string }
	Thumbnail struct{ Image, Size string }
)

// put puts a task that is tried four times more. Then it is archived.
func put(ctx context.Context, client *asynq.Client, kind string, value any) error {
	payload, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = client.EnqueueContext(ctx, asynq.NewTask(kind, payload), asynq.MaxRetry(4))
	return err
}

func workOnTasks(ctx context.Context, client *redis.Client) error {
	server := asynq.NewServerFromRedisClient(client, asynq.Config{
		Concurrency: 8,
		RetryDelayFunc: func(n int, _ error, _ *asynq.Task) time.Duration {
			return min(time.Second<<n, time.Minute)
		},
		ErrorHandler: asynq.ErrorHandlerFunc(func(ctx context.Context, task *asynq.Task, err error) {
			tried, _ := asynq.GetRetryCount(ctx)
			if most, _ := asynq.GetMaxRetry(ctx); tried >= most || errors.Is(err, asynq.SkipRetry) {
				log.Printf("%s %s is dead: %v", task.Type(), task.Payload(), err)
			}
		}),
	})
	mux := asynq.NewServeMux()
	mux.HandleFunc("mail", func(ctx context.Context, task *asynq.Task) error {
		var mail Mail
		if err := json.Unmarshal(task.Payload(), &mail); err != nil {
			return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
		}
		if mail.To == "" {
			return fmt.Errorf("nobody to send to: %w", asynq.SkipRetry)
		}
		fmt.Println("mail to", mail.To)
		return nil
	})
	mux.HandleFunc("thumbnail", func(ctx context.Context, task *asynq.Task) error {
		var thumbnail Thumbnail
		if err := json.Unmarshal(task.Payload(), &thumbnail); err != nil {
			return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
		}
		fmt.Println("thumbnail of", thumbnail.Image)
		return nil
	})
	if err := server.Start(mux); err != nil {
		return err
	}
	<-ctx.Done()
	server.Shutdown()
	return nil
}
