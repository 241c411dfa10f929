//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/workflow"
)

// The paths of values, ids, instances and members. Nothing exclusive is granted there.
const (
	settingPath   = "/setting"   // a config.Value that is set, and that other programs delete and overwrite
	tallyPath     = "/tally"     // a config.Value to which each Set adds 1 at the version that it has read
	treePath      = "/tree"      // a config.Tree with keys that one transaction writes
	sequencePath  = "/sequence"  // an ids.Sequence
	slotsPath     = "/slots"     // workers of package ids
	counterPath   = "/counter"   // an ids.Counter
	instancesPath = "/instances" // a registry
	groupPath     = "/group"     // a members.Group
	// runsPath is the path of workflows. Every client process executes their runs; other actors
	// start, signal and cancel them.
	runsPath = "/runs"
)

// followedPaths are the paths of which processes are shown changes.
var followedPaths = []string{settingPath, tallyPath, treePath, instancesPath, groupPath}

const (
	// goodPrefix begins each text that readers of settingPath accept.
	goodPrefix = "good "
	// workerSlots is how many slots there are. There are hardly more slots than processes, so that
	// a slot soon has another user.
	workerSlots = 5
	// serviceName is the service of all instances.
	serviceName = "billing"
	// staticInstance is the id of an instance in a persistent node, as another program could have
	// made it. So the service always has an instance.
	staticInstance = "static"
)

var treeKeys = []string{treePath + "/a", treePath + "/b", treePath + "/c"}

// tallyValue is the value at tallyPath.
type tallyValue struct {
	N  int64
	By string // the operation that wrote it
}

// treeValue is the value of the tree at treePath: its three keys have the same number.
type treeValue struct{ A, B, C int64 }

// services are a client's values, ids, pool and group.
type services struct {
	client   *framework.Client
	setting  *config.Value[string]
	tally    *config.Value[tallyValue]
	tree     *config.Tree[treeValue]
	sequence *ids.Sequence
	worker   *ids.Worker
	counter  *ids.Counter
	registry *registry.Registry
	pool     *registry.Pool
	group    *members.Group
	flows    *workflow.Workflows
}

func newServices(c *framework.Client, files string) *services {
	return &services{
		client: c,
		setting: config.New(c, settingPath, codec.Text(), config.WithDefault(""),
			config.WithFile[string](filepath.Join(files, "setting")),
			config.WithValidate(func(text string) error {
				if !strings.HasPrefix(text, goodPrefix) {
					return errors.New("it does not begin with " + goodPrefix)
				}
				return nil
			})),
		tally:    config.New(c, tallyPath, codec.JSON[tallyValue](), config.WithDefault(tallyValue{})),
		tree:     config.NewTree[treeValue](c, []string{treePath}),
		sequence: ids.NewSequence(c, sequencePath),
		worker:   ids.NewWorker(c, slotsPath, workerSlots),
		counter:  ids.NewCounter(c, counterPath),
		registry: registry.New(c, instancesPath),
		pool:     registry.NewPool(c, instancesPath, serviceName, registry.WithFile(filepath.Join(files, "instances"))),
		group:    members.New(c, groupPath),
		flows: workflow.New(c, runsPath, workflow.WithRetention(runRetention),
			workflow.WithFailedRetention(runRetention)),
	}
}

func (s *services) close(ctx context.Context) error {
	return closeAll(ctx, s.sequence.Close, s.worker.Close, s.counter.Close, s.pool.Close, s.flows.Close)
}

// closeAll makes each of the cleanups, again and again until the servers have answered or ctx has
// ended. A session that was lost has given all up.
func closeAll(ctx context.Context, cleanups ...func(context.Context) error) (all error) {
	for _, cleanup := range cleanups {
		err := cleanup(ctx)
		for errors.Is(err, framework.ErrUnconfirmed) && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = cleanup(ctx)
		}
		if !errors.Is(err, framework.ErrUnconfirmed) || !errors.Is(err, framework.ErrSessionLost) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// prepareServices creates what the clients expect: the keys of the tree and the static instance.
func (env *testEnv) prepareServices(ctx context.Context) error {
	instance := fmt.Sprintf(`{"name":%q,"id":%q,"address":"10.0.0.7","port":8080,"serviceType":"PERMANENT"}`,
		serviceName, staticInstance)
	nodes := map[string]string{instancesPath + "/" + serviceName + "/" + staticInstance: instance}
	for _, key := range treeKeys {
		nodes[key] = "0"
	}
	for path, data := range nodes {
		dir := path[:strings.LastIndexByte(path, '/')]
		if err := errors.Join(env.observer.MakeDirs(ctx, dir),
			env.observer.CreateIfMissing(ctx, path, []byte(data), framework.Persistent)); err != nil {
			return err
		}
	}
	return nil
}

// call is a request that ends with its answer.
type call struct {
	request        event
	mayHappenLater bool    // it may be carried out after its context has ended
	mayBeUnknown   bool    // its documentation allows an unknown outcome also before its context has ended
	refusals       []error // other errors that its documentation allows
}

// run makes a call and writes its outcome. do sets the fields of the answer.
func (c call) run(ctx context.Context, p *clientProcess, do func(op int64, answer *event) error) error {
	op := p.lastOp.Add(1)
	c.request.At, c.request.Op, c.request.Step = now(), op, stepRequested
	p.write(c.request)
	answer := event{Op: op, Step: stepGranted}
	err := do(op, &answer)
	isRefusal := slices.ContainsFunc(c.refusals, func(r error) bool { return errors.Is(err, r) })
	switch {
	case err == nil:
	case errors.Is(err, framework.ErrOutcomeUnknown) && (c.mayBeUnknown || ctx.Err() != nil), isEndOf(ctx, err) &&
		c.mayHappenLater,
		errors.Is(err, framework.ErrUnconfirmed):
		answer.Step = stepUnknown
		if ctx.Err() == nil {
			answer.Error = err.Error()
		}
	case isEndOf(ctx, err), isRefusal:
		answer.Step = stepAbandoned
	default:
		answer.Step, answer.Error = stepFailed, err.Error()
	}
	answer.At = now()
	p.write(answer)
	return err
}

// writeShown writes what a follower of a path was shown.
func (p *clientProcess) writeShown(ctx context.Context, path string, e event, err error) {
	if err != nil {
		if isEndOf(ctx, err) {
			return
		}
		e.Error = err.Error()
	}
	e.At, e.Step, e.Path = now(), stepShown, path
	p.write(e)
}

// listed is the latest number of an instance or a member.
type listed struct {
	process   string
	number    int64
	uncertain []int64 // later numbers of updates with an unknown outcome
}

// updateListing notes a call of an instance or a member. The caller holds mu.
func (h *history) updateListing(op *operation) {
	listing, r := h.listings[op.request.Path], op.request
	switch {
	case listing == nil:
	case r.Kind == kindJoin && !op.uncertain:
		listing[r.Item] = &listed{process: op.process, number: r.Number}
	case r.Kind == kindUpdate && listing[r.Item] != nil && op.uncertain:
		listing[r.Item].uncertain = append(listing[r.Item].uncertain, r.Number)
	case r.Kind == kindUpdate && listing[r.Item] != nil:
		listing[r.Item].number, listing[r.Item].uncertain = r.Number, nil
	}
}

// addShown adds what a follower was shown. The caller holds mu.
func (h *history) addShown(process string, e event) {
	if e.Error != "" {
		h.errors = append(h.errors, fmt.Errorf("%s cannot follow %s: %s", process, e.Path, e.Error))
		return
	}
	h.shown = append(h.shown, shownEvent{process, e})
	if e.Kind == "" {
		h.latest[process+" "+e.Path] = e
	}
}

// servicesAtRest is the state that the servers have when all clients rest.
type servicesAtRest struct {
	settingVersion int64
	tally, counter int64
}

// awaitServicesAtRest waits until each living process was shown the state that the servers have:
// the setting that the harness writes, the tally, the tree, and the living instances and members
// without any others.
func (env *testEnv) awaitServicesAtRest(ctx context.Context, segment int) (*servicesAtRest, error) {
	text := fmt.Sprintf("%sat rest %d", goodPrefix, segment)
	for {
		at, want, err := env.readServices(ctx, text)
		var missing []string
		if err == nil {
			if missing = env.history.notShown(want); len(missing) == 0 {
				return at, nil
			}
		}
		if ctx.Err() != nil {
			return nil, errors.Join(env.recordStall(nil),
				fmt.Errorf("the resting clients were not shown the state of the servers: %s: %w",
					strings.Join(missing, "; "), errors.Join(err, ctx.Err())))
		}
		if err := recipe.Pause(ctx, checkInterval); err != nil {
			continue // the next round reports what is missing
		}
	}
}

// readServices reads the state that the servers have. It sets the setting, unless the setting has
// this text already, and withdraws the cordons that clients have left.
func (env *testEnv) readServices(ctx context.Context,
	text string) (at *servicesAtRest, want map[string]event, err error) {
	s := env.services
	setting, err := s.setting.Load(ctx)
	if errors.Is(err, framework.ErrBadValue) || err == nil && setting.Value != text {
		if err = s.setting.Set(ctx, text); err == nil {
			setting, err = s.setting.Load(ctx)
		}
	}
	tally, err1 := s.tally.Load(ctx)
	tree, err2 := s.tree.Load(ctx)
	counter, err3 := s.counter.Get(ctx)
	view, err4 := s.group.Inspect(ctx)
	if err := errors.Join(err, err1, err2, err3, err4); err != nil {
		return nil, nil, err
	}
	for _, cordon := range view.Cordons {
		from := now()
		if err := s.group.Uncordon(ctx, cordon.ID); err != nil {
			return nil, nil, err
		}
		env.history.addUncordon(cordon.ID, from, now())
	}
	return &servicesAtRest{setting.Version, tally.Value.N, counter}, map[string]event{
		settingPath: {Item: text, Token: setting.Version},
		tallyPath:   {Item: tally.Value.By, Number: tally.Value.N, Token: tally.Version},
		treePath:    {Numbers: []int64{tree.Value.A, tree.Value.B, tree.Value.C}},
	}, nil
}

// addUncordon adds a cordon that the harness has withdrawn.
func (h *history) addUncordon(id string, from, to int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = append(h.closed,
		&operation{id: "harness", process: "harness",
			request: event{At: from, Kind: kindUncordon, Path: groupPath, Item: id}, grant: event{At: to}})
}

// notShown returns what followers in living processes have not been shown: values, by path, and
// listings.
func (h *history) notShown(want map[string]event) (missing []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for process := range h.alive {
		for path, w := range want {
			if is := h.latest[process+" "+path]; is.Item != w.Item || is.Number != w.Number ||
				!slices.Equal(is.Numbers, w.Numbers) {
				missing = append(missing, fmt.Sprintf("%s: %s was shown %q %d %v, and the servers have %q %d %v", path,
					process, is.Item, is.Number, is.Numbers, w.Item, w.Number, w.Numbers))
			}
		}
		for path, listing := range h.listings {
			missing = append(missing, wrongListing(path, process, h.latest[process+" "+path].Listed, listing)...)
		}
	}
	slices.Sort(missing)
	return missing
}

// wrongListing returns where a list differs from what living processes have registered.
func wrongListing(path, process string, is map[string]int64, want map[string]*listed) (wrong []string) {
	for id := range is {
		if want[id] == nil && id != staticInstance {
			wrong = append(wrong, fmt.Sprintf("%s: %s lists %s, which is gone", path, process, id))
		}
	}
	for id, w := range want {
		if number, there := is[id]; !there || number != w.number && !slices.Contains(w.uncertain, number) {
			wrong = append(wrong, fmt.Sprintf("%s: %s lists %s with %d (%v), which has %d or %v", path, process, id,
				number, there, w.number, w.uncertain))
		}
	}
	return wrong
}
