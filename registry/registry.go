package registry

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Registry registers and lists the instances of the services below a directory. It is safe for
// concurrent use.
type Registry struct {
	client *framework.Client
	base   string
	err    error // of the arguments of New; every call returns it
}

// New returns the registry at base. It sends no request. If an argument is invalid, every call
// returns an error that says so.
func New(client *framework.Client, base string) *Registry {
	return &Registry{client, base, recipe.CheckClientAndPath(client, base, "a registry")}
}

// Path is the registry's directory.
func (r *Registry) Path() string { return r.base }

// Validate returns what is wrong with the arguments of New, as every call does, or nil. It sends no
// request.
func (r *Registry) Validate() error { return r.err }

// Services returns the names of all services that have a directory, sorted, as the connected server
// knows them. A service without instances is among them until the servers remove its directory.
// Without a directory at base there are none. The error is that of ctx, or wraps
// framework.ErrInvalid, framework.ErrClosed or framework.ErrNoAuth.
func (r *Registry) Services(ctx context.Context) (names []string, err error) {
	if r.err != nil {
		return nil, failure.Wrap("list services in", r.base, r.err)
	}
	names, _, err = r.client.Children(ctx, r.base)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	slices.Sort(names)
	return names, failure.Wrap("list services in", r.base, err)
}

// Instances returns all instances of a service, also disabled ones, ordered by id. It reads after a
// sync. It leaves out nodes whose data is not a valid instance. The error is that of ctx, or wraps
// framework.ErrInvalid, framework.ErrClosed or framework.ErrNoAuth.
func (r *Registry) Instances(ctx context.Context, service string) (all []Instance, err error) {
	if r.err != nil {
		return nil, failure.Wrap("list instances in", r.base, r.err)
	}
	dir := r.serviceDir(service)
	err = recipe.OnSession(ctx, r.client, func(s *framework.Session) error {
		if err := s.Sync(ctx, dir); err != nil {
			return err
		}
		names, _, err := s.Children(ctx, dir)
		if errors.Is(err, framework.ErrNoNode) {
			all = nil
			return nil
		}
		if err != nil {
			return err
		}
		all, _, err = readInstances(ctx, s, dir, names)
		return err
	}, failure.IsTransient)
	return all, failure.Wrap("list instances in", dir, err)
}

// Disable makes pools stop picking an instance, and stores the reason, by default "disabled". The
// instance stays registered. An instance of this package stays disabled when it is registered again
// on its next session, if its process has noticed. Any client with write permission may disable an
// instance, also one of a Java program.
//
// The error wraps framework.ErrNotFound, framework.ErrBadRecord if the node's data is not a valid
// instance, framework.ErrInvalid, framework.ErrClosed or framework.ErrNoAuth, or is that of
// ctx; then the change may have been made.
func (r *Registry) Disable(ctx context.Context, service, id, reason string) error {
	if reason == "" {
		reason = "disabled"
	}
	return failure.Wrap("disable", znode.Join(r.serviceDir(service), id),
		r.changeInstance(ctx, service, id, func(i *Instance) { i.Disabled = reason }))
}

// Enable enables a disabled instance. The reason for which it was disabled does not matter. If the
// instance's health check fails, its process disables it again. The error is as that of Disable.
func (r *Registry) Enable(ctx context.Context, service, id string) error {
	return failure.Wrap("enable", znode.Join(r.serviceDir(service), id),
		r.changeInstance(ctx, service, id, func(i *Instance) { i.Disabled = "" }))
}

// changeInstance changes an instance. change may be called several times.
func (r *Registry) changeInstance(ctx context.Context, service, id string, change func(*Instance)) error {
	if r.err != nil {
		return r.err
	}
	if (Instance{Service: service, ID: id, Address: "x", Port: 1, Weight: 1}).checkFields() != nil {
		return errNotFound
	}
	return recipe.OnSession(ctx, r.client, func(s *framework.Session) error {
		_, _, err := writeChange(ctx, s, r.serviceDir(service), id, 0, change)
		return err
	}, failure.IsTransient, isUnknown)
}

// isUnknown reports whether the outcome of a write is unknown. The caller reads the instance again
// then, and applies the change to its present state.
func isUnknown(err error) bool { return errors.Is(err, framework.ErrOutcomeUnknown) }

// writeChange reads an instance in a service's directory, applies change, and writes the instance
// at the version that it has read. The same transaction writes the directory, so that pools read
// the instances again. If owner is not 0, the node must belong to that session. writeChange does
// not write if change makes no difference. It returns the instance and the node's data. The error
// wraps framework.ErrNotFound, framework.ErrBadRecord, or recipe.ErrAgain if another client has
// changed the instance meanwhile.
func writeChange(ctx context.Context, s *framework.Session, dir, id string, owner framework.SessionID,
	change func(*Instance)) (Instance, []byte, error) {
	_, service := znode.Split(dir)
	node := znode.Join(dir, id)
	data, stat, err := s.Get(ctx, node)
	if errors.Is(err, framework.ErrNoNode) || err == nil && owner != 0 && stat.EphemeralOwner != owner {
		return Instance{}, nil, errNotFound
	}
	if err != nil {
		return Instance{}, nil, err
	}
	i, err := decodeInstance(service, id, data)
	if err != nil {
		return Instance{}, nil, err
	}
	before := i.cloneInstance()
	change(&i)
	i.normalizeText()
	if reflect.DeepEqual(i, before) {
		return i, data, nil
	}
	if err := i.checkFields(); err != nil {
		return Instance{}, nil, err
	}
	next := encodeInstance(i, data)
	_, err = s.Multi(ctx, framework.SetOp(node, next, stat.Version), framework.SetOp(dir, nil, framework.AnyVersion))
	var refused *framework.TxError
	if errors.As(err, &refused) && (errors.Is(err, framework.ErrBadVersion) || errors.Is(err, framework.ErrNoNode)) {
		return Instance{}, nil, recipe.ErrAgain
	}
	if err != nil {
		return Instance{}, nil, err
	}
	i, err = decodeInstance(service, id, next)
	return i, next, err
}

func (r *Registry) serviceDir(service string) string { return znode.Join(r.base, service) }

// refusedInstance is a node whose data is not a valid instance, and why.
type refusedInstance struct {
	node string
	err  error
}

// readInstances reads the instances with these names, and returns them in the order of their ids.
// It leaves out instances that are gone meanwhile.
func readInstances(ctx context.Context, s *framework.Session, dir string,
	names []string) (all []Instance, refused []refusedInstance, err error) {
	paths := make([]string, len(names))
	for i, name := range slices.Sorted(slices.Values(names)) {
		paths[i] = znode.Join(dir, name)
	}
	nodes, err := s.GetAll(ctx, paths...)
	if err != nil {
		return nil, nil, err
	}
	_, service := znode.Split(dir)
	for n, node := range nodes {
		switch {
		case errors.Is(node.Err, framework.ErrNoNode):
			continue
		case node.Err != nil:
			return nil, nil, node.Err
		}
		_, id := znode.Split(paths[n])
		i, err := decodeInstance(service, id, node.Data)
		if err != nil {
			refused = append(refused, refusedInstance{paths[n], err})
			continue
		}
		all = append(all, i)
	}
	return all, refused, nil
}
