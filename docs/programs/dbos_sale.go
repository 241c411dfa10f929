package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
)

var errSoldOut = errors.New("sold out")

// sell records that the item is sold out as a result, since errors.Is does not find it in an error
// that is read back from the record.
func sell(ctx dbos.Context, item int) (string, error) {
	charge, err := dbos.RunAsStep(ctx, func(ctx context.Context) (string, error) {
		fmt.Println("charging for item", item)
		return "charge 12", nil
	}, dbos.WithStepName("charge"))
	if err != nil {
		return "", err
	}
	shipped, err := dbos.RunAsStep(ctx, func(ctx context.Context) (bool, error) {
		if err := ship(item); errors.Is(err, errSoldOut) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		return true, nil
	}, dbos.WithStepName("ship"), dbos.WithStepMaxRetries(10))
	switch {
	case err != nil:
		return "", err
	case shipped:
		return "shipped", nil
	}
	return dbos.RunAsStep(ctx, func(ctx context.Context) (string, error) {
		fmt.Println("refunding", charge)
		return "refunded", nil
	}, dbos.WithStepName("refund"), dbos.WithStepMaxRetries(10))
}

func ship(item int) error { return fmt.Errorf("item %d: %w", item, errSoldOut) }

// workOnSales executes sales until ctx ends, and goes on with those of an executor that has died once
// it starts again with the same id.
func workOnSales(ctx context.Context, databaseURL string, use func(dbos.Context)) error {
	flows, err := dbos.NewContext(ctx, dbos.Config{AppName: "shop", DatabaseURL: databaseURL})
	if err != nil {
		return err
	}
	dbos.RegisterWorkflow(flows, sell)
	if err := dbos.Launch(flows); err != nil {
		return err
	}
	use(flows)
	<-ctx.Done()
	return dbos.Shutdown(flows, 30*time.Second)
}

func order(flows dbos.Context, id string, item int) (string, error) {
	sale, err := dbos.RunWorkflow(flows, sell, item, dbos.WithWorkflowID(id))
	if err != nil {
		return "", err
	}
	return sale.GetResult()
}
