package schedulerfx_test

import (
	"context"
	"fmt"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/framework/frameworkfx"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/scheduler/schedulerfx"
)

// Reports is what an application provides.
type Reports struct{}

// Rollup does the work.
func (*Reports) Rollup(context.Context, scheduler.Run) error { return nil }

func ExampleAsJob() {
	app := fx.New(
		frameworkfx.Module, frameworkfx.Grace(scheduler.DefaultGrace), schedulerfx.At("/jobs"), fx.NopLogger,
		fx.Supply(framework.Config{Servers: []string{"zk1.example.com", "zk2.example.com"}}),
		fx.Provide(func() *Reports { return &Reports{} }),
		schedulerfx.AsJob(func(r *Reports) scheduler.Job {
			return scheduler.Job{Name: "rollup", Spec: "0 3 * * *", Run: r.Rollup}
		}),
	)
	fmt.Println(app.Err())
	// Output: <nil>
}
