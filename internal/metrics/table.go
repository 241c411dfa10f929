// Package metrics has the table of all metrics of Lockstep. The recipes make their instruments from
// its rows. Package internal/metrics/dashboard generates the table of docs/telemetry.md, a
// dashboard and alert rules from it.
package metrics

// Kind is the kind of an instrument.
type Kind string

// The kinds.
const (
	Histogram Kind = "histogram"
	Counter   Kind = "counter"
	UpDown    Kind = "up-down counter"
	Gauge     Kind = "gauge"
)

// Metric is one row of the table.
type Metric struct {
	// Scope is the package that measures it.
	Scope string
	Kind  Kind
	Name  string
	// Unit is in UCUM, as OpenTelemetry requires.
	Unit string
	// Description says what is measured. The instrument has it as its description.
	Description string
	// Attributes are the keys of the attributes. Each has few values, except where the description
	// says otherwise.
	Attributes []string
	// Buckets are the upper bounds of a histogram's buckets.
	Buckets []float64
}

// The bounds of buckets, in seconds.
var (
	// for a few round trips, or a wait
	short = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	// for a hold or a term
	long = []float64{.01, .1, .5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600}
	// for the rest of a session's lease
	lease = []float64{.1, .25, .5, 1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10, 15, 20, 30, 60}
	// for a run of a job
	tasks = []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 2 * 3600, 6 * 3600, 86_400}
)

// The attributes of metrics.
const (
	Outcome      = "lockstep.outcome"
	Reason       = "lockstep.reason"
	LockKind     = "lockstep.lock.kind"
	State        = "lockstep.state"
	Operation    = "lockstep.operation"
	Job          = "lockstep.job"
	Broken       = "lockstep.deadlock.broken"
	BarrierWait  = "lockstep.barrier.wait"
	Service      = "lockstep.service"
	MemberEvent  = "lockstep.members.change"
	IDs          = "lockstep.ids.kind"
	Root         = "lockstep.root"
	Problem      = "lockstep.problem"
	Event        = "lockstep.event"
	Path         = "lockstep.path"
	WorkflowKind = "lockstep.workflow.kind"

	messagingSystem    = "messaging.system"
	messagingOperation = "messaging.operation.name"
	messagingType      = "messaging.operation.type"
)

// The rows.
var (
	SessionState = row("framework", UpDown, "lockstep.session.state", "{session}",
		"sessions of this process by state (`connecting`, `connected`, `suspended`)", State)
	SessionLosses = row("framework", Counter, "lockstep.session.losses", "{session}", "sessions that were lost")
	LeaseLeft     = histogram("framework", "lockstep.session.lease.remaining",
		"rest of a session's lease when a proof of life extends it, which is its lowest value since the former "+
			"proof of life", lease)
	HeartbeatDuration = histogram("framework", "lockstep.session.heartbeat.duration",
		"proofs of life, from the write to the answer of the sync", short, Outcome)
	Requests = row("framework", Counter, "lockstep.requests", "{request}",
		"requests to the servers, by operation (`getData`, `multi`, …) and outcome (`answered`, `refused`, "+
			"`overloaded`, `not sent`, `lost`)", Operation, Outcome)

	LockWait = histogram("locks", "lockstep.lock.wait.duration",
		"calls that ask for a lock, until it is granted or the call fails", short, LockKind, Outcome)
	LockHold = histogram("locks", "lockstep.lock.hold.duration",
		"holds of a lock, by how they ended (`released`, `max hold`, `session lost`, `node deleted`, `closed`, `other`; "+
			"on Redis also `expired`, `lost`)", long, LockKind, Reason)
	LockHeld    = row("locks", UpDown, "lockstep.lock.held", "{lease}", "leases that this process holds", LockKind)
	LockWaiting = row("locks", UpDown, "lockstep.lock.waiting", "{call}",
		"calls of this process that wait for a lock", LockKind)
	LockDeadlocks = row("locks", Counter, "lockstep.lock.deadlocks", "{deadlock}",
		"deadlocks whose youngest request is of this process; `lockstep.deadlock.broken` is false if the request does not "+
			"fail, because it only reports deadlocks", LockKind, Broken)

	TermDuration = histogram("election", "lockstep.election.term.duration",
		"terms, by why they ended (`resigned`, `transferred`, `over`, `unhealthy`, `disconnected`, `session lost`, "+
			"`node deleted`, `closed`)", long, Reason)
	Leading = row("election", UpDown, "lockstep.election.leading", "{term}", "current terms of this process")

	RunDuration = histogram("scheduler", "lockstep.scheduler.run.duration", "runs of jobs", tasks, Job, Outcome)
	StartLag    = histogram("scheduler", "lockstep.scheduler.start.lag",
		"from a tick to the start of its run, jitter included", tasks, Job)
	MissedTicks = row("scheduler", Counter, "lockstep.scheduler.missed", "{tick}", "ticks that were due and not run",
		Job, Reason)
	StuckRuns = row("scheduler", Counter, "lockstep.scheduler.stuck", "{run}",
		"runs that did not return in time after their contexts ended", Job)
	LastSuccess = row("scheduler", Gauge, "lockstep.scheduler.last_success", "s",
		"when a run of a job succeeded last in this process, in seconds since 1970", Job)

	QueueSent = row("queue", Counter, "messaging.client.sent.messages", "{message}",
		"items of puts that have ended, by outcome", messagingOperation, messagingSystem, messagingType, Outcome)
	QueueConsumed = row("queue", Counter, "messaging.client.consumed.messages", "{message}", "items that were taken",
		messagingOperation, messagingSystem, messagingType)
	QueueSettled  = row("queue", Counter, "lockstep.queue.settled", "{item}", "deliveries that have ended", Outcome)
	QueueDuration = histogram("queue", "messaging.client.operation.duration", "puts and settlements", short,
		messagingOperation, messagingSystem, messagingType, Outcome)

	BarrierWaits = histogram("barrier", "lockstep.barrier.wait.duration",
		"waits at a barrier, a gate or a latch (`barrier.enter`, …)", short, BarrierWait, Outcome)
	BarrierRounds = row("barrier", Counter, "lockstep.barrier.rounds", "{round}",
		"rounds that members of this process have entered")

	ConfigChanges = row("config", Counter, "lockstep.config.changes", "{change}",
		"values that were taken from the servers")
	ConfigRefused = row("config", Counter, "lockstep.config.refused", "{value}",
		"values of the servers that could not be decoded or were not valid")
	ConfigSets = row("config", Counter, "lockstep.config.sets", "{write}",
		"calls of Set and Rollback, by outcome (`written`, `conflict`, `refused`, `unknown`, `given up`, `error`)",
		Outcome)

	IDsReservations = row("ids", Counter, "lockstep.ids.reservations", "{reservation}",
		"reservations of blocks of a `sequence` and of windows of a `worker`, by outcome (`reserved`, "+
			"`closed`, `error`)", IDs, Outcome)
	IDsWaits = histogram("ids", "lockstep.ids.wait.duration",
		"calls that found no id in memory, until they have one or fail", short, IDs, Outcome)
	IDsCounterChanges = row("ids", Counter, "lockstep.ids.counter.changes", "{change}",
		"changes of counters, by outcome (`made`, `refused`, `unknown`, `given up`, `error`)", Outcome)
	IDsCounterWrites = row("ids", Counter, "lockstep.ids.counter.transactions", "{transaction}",
		"transactions that made changes of counters, many at a time")

	RegistryRegistered = row("registry", UpDown, "lockstep.registry.registered", "{instance}",
		"instances of this process that are registered, as far as it knows")
	RegistryRegistrations = row("registry", Counter, "lockstep.registry.registrations", "{registration}",
		"nodes that were created for instances of this process: `first`, or `again`, after a lost session or a "+
			"deleted node", Reason)
	RegistryHealth = row("registry", Counter, "lockstep.registry.health.checks", "{check}",
		"health checks of instances of this process (`healthy`, `unhealthy`)", Outcome)
	RegistryLists = row("registry", Counter, "lockstep.registry.lists", "{list}",
		"lists of instances that pools have read. If it does not rise for several refreshes, the pools use an old list",
		Service)
	RegistryInstances = row("registry", UpDown, "lockstep.registry.instances", "{instance}",
		"instances in the latest list of each pool, by state (`enabled`, `disabled`, `unusable`: a node that is not "+
			"a valid instance)", Service, State)
	RegistryCalls = histogram("registry", "lockstep.registry.call.duration",
		"calls of instances that pools have picked (`succeeded`, `failed`)", short, Service, Outcome)
	RegistryEjections = row("registry", Counter, "lockstep.registry.ejections", "{ejection}",
		"instances that get no calls for a while because calls of them have failed", Service)
	RegistryUnserved = row("registry", Counter, "lockstep.registry.pick.failures", "{call}",
		"picks without an instance (`no instance`, `given up`, `error`)", Service, Outcome)

	MembersListed = row("members", UpDown, "lockstep.members.listed", "{member}",
		"members of this process that are listed, as far as it knows")
	MembersJoins = row("members", Counter, "lockstep.members.joins", "{join}",
		"nodes that were created for members of this process: `first`, or `again`, after a lost session or a "+
			"deleted node", Reason)
	MembersUpdates = row("members", Counter, "lockstep.members.updates", "{update}",
		"writes of the data of members of this process")
	MembersCordoned = row("members", UpDown, "lockstep.members.cordoned", "{member}",
		"members of this process that are cordoned")
	MembersDrains = histogram("members", "lockstep.members.drain.duration",
		"drain functions of members of this process (`drained`, `failed`, `withdrawn`)", tasks, Outcome)
	MembersChanges = row("members", Counter, "lockstep.members.changes", "{change}",
		"changes that watchers of this process have received (`joined`, `rejoined`, `changed`, `left`); a call of "+
			"Drain is a watcher too", MemberEvent)

	WorkflowExecutions = histogram("workflow", "lockstep.workflow.execution.duration",
		"calls of runs' functions, by outcome (`done`, `failed`, `waiting`, `retried`; `changed`: another client "+
			"has changed the run; `lost`)", tasks, WorkflowKind, Outcome)
	WorkflowSteps = histogram("workflow", "lockstep.workflow.step.duration",
		"steps that were run, with their attempts and the record (`recorded`, `failed`, `lost`)", tasks, Outcome)

	MonitorUp = row("monitor", Gauge, "lockstep.monitor.up", "{monitor}",
		"1 if the leading monitor's latest scan succeeded, 0 if it failed; only the leader has it, so it is absent "+
			"when no monitor scans", Root)
	MonitorFindings = row("monitor", Gauge, "lockstep.monitor.findings", "{finding}",
		"findings that have begun and not ended, by problem", Root, Problem)
	MonitorEvents = row("monitor", Counter, "lockstep.monitor.events", "{event}",
		"findings that have begun and ended (`begins`, `ends`)", Root, Problem, Event)
	MonitorScan = histogram("monitor", "lockstep.monitor.scan.duration",
		"scans everything below the root (`answered`, `failed`)", long, Root, Outcome)
	MonitorRequests = row("monitor", Gauge, "lockstep.monitor.scan.requests", "{request}",
		"requests of the latest scan", Root)
	MonitorWaiters = row("monitor", Gauge, "lockstep.monitor.lock.waiters", "{waiter}",
		"waiters of the 20 locks with the most; the rest together as `other`", Root, Path)
	MonitorItems = row("monitor", Gauge, "lockstep.monitor.queue.items", "{item}",
		"items of the 20 longest queues by state (`items`, `delayed`, `dead`); the rest together as `other`",
		Root, Path, State)
	MonitorOldest = row("monitor", Gauge, "lockstep.monitor.queue.oldest", "s",
		"age of the oldest item at the head of the 20 longest queues; the oldest of the rest as `other`", Root, Path)
	MonitorAttempts = row("monitor", Gauge, "lockstep.monitor.queue.attempts", "{attempt}",
		"the most attempts that an item of the 20 longest queues has behind it; the most of the rest as `other`", Root,
		Path)
	MonitorHeld = row("monitor", Gauge, "lockstep.monitor.queue.held", "s",
		"for how long a consumer has had an item of the 20 longest queues; the longest of the rest as `other`", Root,
		Path)
)

// All are the rows, in the order of the table in docs/telemetry.md.
var All []*Metric

func row(scope string, kind Kind, name, unit, description string, attributes ...string) *Metric {
	m := &Metric{Scope: scope, Kind: kind, Name: name, Unit: unit, Description: description, Attributes: attributes}
	All = append(All, m)
	return m
}

// histogram adds a row for durations in seconds.
func histogram(scope, name, description string, buckets []float64, attributes ...string) *Metric {
	m := row(scope, Histogram, name, "s", description, attributes...)
	m.Buckets = buckets
	return m
}
