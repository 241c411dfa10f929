package sim

func init() { newWorkload["sleepers"] = newSleepersWorkload }

// sleepersWorkload is another workload. Most processes use it so rarely that their sessions fall
// asleep in between; the first one does all the time. The processes are served by followers.
type sleepersWorkload struct{ workload }

func newSleepersWorkload(sim *simulation, spec workloadSpec) workload {
	r := newRand(sim.plan.seed, "what wakes "+spec.path)
	makeIt := pickOne(r, newMutexWorkload, newMutexWorkload, newMutexWorkload, newClaimWorkload, newRWLockWorkload,
		newSemaphoreWorkload, newElectionWorkload)
	return &sleepersWorkload{makeIt(sim, spec)}
}

// runActor has the actors of all processes but the first pause for more than two session timeouts
// before each step. They hold long, so that they still hold if their sessions end too soon. The
// others hold shortly, so that there is room for that.
func (s *sleepersWorkload) runActor(a *actor) {
	if a.slot > 0 {
		a.minPause = 2*a.sim.plan.sessionTimeout + 1
		a.hold = a.sim.plan.sessionTimeout
	} else {
		a.hold = a.sim.plan.sessionTimeout / 50
	}
	s.workload.runActor(a)
}
