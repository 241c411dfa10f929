package mutants

func init() { lists["queue_parallel"] = queueParallelMutants }

// queueParallelMutants are the safeguards of the parallel order of package queue.
var queueParallelMutants = []mutant{}
