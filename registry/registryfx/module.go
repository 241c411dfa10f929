// Package registryfx wires package registry into an application that is built with go.uber.org/fx.
package registryfx

import (
	"context"
	"fmt"

	"go.uber.org/fx"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/appmodule"
	"github.com/lockstep-go/lockstep/internal/drain"
	"github.com/lockstep-go/lockstep/registry"
)

// Instance is an instance that an application registers.
type Instance struct {
	registry.Instance
	// Options are those of Registry.Register.
	Options []registry.RegisterOption
}

// At provides the *registry.Registry at base, on the application's client, and registers the
// instances that AsInstance provides from the application's start to its stop. Start does not wait
// for ZooKeeper, nor for the registration. Stop drains the registrations before the other modules
// are stopped; see Registration.Drain. If an instance cannot be registered, the application is shut
// down with exit code 1. With a wrong path the application does not build.
func At(base string) fx.Option {
	if err := framework.ValidatePath(base); err != nil {
		return fx.Error(fmt.Errorf("registryfx.At: %w", err))
	}
	return fx.Module("lockstep.registry",
		fx.Provide(func(client *framework.Client) *registry.Registry { return registry.New(client, base) }),
		fx.Invoke(register))
}

// AsInstance adds an Instance, an []Instance, or what a constructor returns that makes one of
// these, and an error if it may fail. The application does not build with anything else. The
// constructor may take anything the application provides, also with annotations, such as
// fx.ParamTags.
func AsInstance(instanceOrConstructor any, annotations ...fx.Annotation) fx.Option {
	return appmodule.Collect[Instance]("registryfx.AsInstance", "lockstep.registry.instances", instanceOrConstructor,
		annotations)
}

// Pool provides the *registry.Pool of a service under the service's name, on the application's
// client, and closes it when the application stops. A constructor takes it by the name:
//
//	fx.Annotate(newClient, fx.ParamTags(`name:"billing"`))
//
// With a wrong argument the application does not build.
func Pool(base, service string, opts ...registry.PoolOption) fx.Option {
	newPool := func(lc fx.Lifecycle, client *framework.Client) (*registry.Pool, error) {
		p := registry.NewPool(client, base, service, opts...)
		if err := p.Validate(); err != nil {
			return nil, err
		}
		lc.Append(fx.StopHook(p.Close))
		return p, nil
	}
	return fx.Provide(fx.Annotate(newPool, fx.ResultTags(fmt.Sprintf("name:%q", service))))
}

type params struct {
	fx.In

	App       appmodule.App
	Client    *framework.Client
	Registry  *registry.Registry
	Instances []Instance `group:"lockstep.registry.instances"`
}

// register keeps the instances registered between the application's start and stop.
func register(p params) {
	for _, i := range p.Instances {
		p.App.Run(drain.Pool, "instance of "+i.Service, p.Registry.Path(), p.Client.Logger(),
			func(ctx context.Context) error { return keepRegistered(ctx, p.Registry, i) })
	}
}

// keepRegistered registers an instance until ctx ends, and then drains it.
func keepRegistered(ctx context.Context, r *registry.Registry, i Instance) error {
	registration, err := r.Register(ctx, i.Instance, i.Options...)
	if err != nil {
		return err
	}
	select {
	case <-registration.Done():
		return registration.Err()
	case <-ctx.Done():
	}
	cleanup, cancel := drain.Cleanup(ctx)
	defer cancel()
	return registration.Drain(cleanup)
}
