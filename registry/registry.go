package registry

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Registry is the services below a directory. It is safe for concurrent use.
type Registry struct {
	client *framework.Client
	base   string
	err    error // of the arguments; every call returns it
}

// New returns the registry at base.
func New(client *framework.Client, base string) *Registry {
	return &Registry{client, base, recipe.CheckClientAndPath(client, base, "a registry")}
}

// Path is the registry's directory.
func (r *Registry) Path() string { return r.base }

// Services lists the names of all services that have a directory. A service without instances may be among them until the servers remove its directory.
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

// Instances lists a service's instances behind a sync, ordered by id. It leaves out nodes that are no instances.
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

// Disable takes an instance out of the pools with a reason. It stays registered, also when its session is lost. Anyone may disable an instance, also one of a Java program.
func (r *Registry) Disable(ctx context.Context, service, id, reason string) error {
	if reason == "" {
		reason = "disabled"
	}
	return failure.Wrap("disable", znode.Join(r.serviceDir(service), id), r.changeInstance(ctx, service, id, func(i *Instance) { i.Disabled = reason }))
}

// Enable undoes Disable. While an instance's health check fails, its process disables the instance again.
func (r *Registry) Enable(ctx context.Context, service, id string) error {
	return failure.Wrap("enable", znode.Join(r.serviceDir(service), id), r.changeInstance(ctx, service, id, func(i *Instance) { i.Disabled = "" }))
}

func (r *Registry) changeInstance(ctx context.Context, service, id string, change func(*Instance)) error {
	if r.err != nil {
		return r.err
	}
	if (Instance{Service: service, ID: id, Address: "x", Port: 1, Weight: 1}).checkFields() != nil {
		return ErrNotFound
	}
	return recipe.OnSession(ctx, r.client, func(s *framework.Session) error {
		_, _, err := writeChange(ctx, s, r.serviceDir(service), service, id, 0, change)
		return err
	}, failure.IsTransient, isUnknown)
}

// isUnknown reports whether an error says that a write has no answer. The caller repeats the change on the instance's new state.
func isUnknown(err error) bool { return errors.Is(err, framework.ErrOutcomeUnknown) }

// writeChange changes an instance at the version that was read, and tells the pools by a write of the directory. With an owner, the node must be that session's. A change that makes no difference is not written.
func writeChange(ctx context.Context, s *framework.Session, dir, service, id string, owner int64, change func(*Instance)) (Instance, []byte, error) {
	node := znode.Join(dir, id)
	data, st, err := s.Get(ctx, node)
	if errors.Is(err, framework.ErrNoNode) || err == nil && owner != 0 && st.EphemeralOwner != owner {
		return Instance{}, nil, ErrNotFound
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
	if reflect.DeepEqual(i, before) {
		return i, data, nil
	}
	if err := i.checkFields(); err != nil {
		return Instance{}, nil, err
	}
	next := encodeInstance(i, data)
	_, err = s.Multi(ctx, framework.SetOp(node, next, st.Version), framework.SetOp(dir, nil, framework.AnyVersion))
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

// refusedInstance is a node that is no instance, and why.
type refusedInstance struct {
	node string
	err  error
}

// readBatch is how many instances one request reads.
const readBatch = 500

// readInstances reads instances, in the order of their ids. It leaves out instances that have gone meanwhile.
func readInstances(ctx context.Context, s *framework.Session, dir string, names []string) (all []Instance, refused []refusedInstance, err error) {
	names = slices.Clone(names)
	slices.Sort(names)
	service := dir[strings.LastIndexByte(dir, '/')+1:]
	for batch := range slices.Chunk(names, readBatch) {
		paths := make([]string, len(batch))
		for i, name := range batch {
			paths[i] = znode.Join(dir, name)
		}
		nodes, err := s.GetAll(ctx, paths...)
		if err != nil {
			return nil, nil, err
		}
		for n, node := range nodes {
			switch {
			case errors.Is(node.Err, framework.ErrNoNode):
				continue
			case node.Err != nil:
				return nil, nil, node.Err
			}
			i, err := decodeInstance(service, batch[n], node.Data)
			if err != nil {
				refused = append(refused, refusedInstance{paths[n], err})
				continue
			}
			all = append(all, i)
		}
	}
	return all, refused, nil
}
