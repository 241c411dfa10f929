package mutants

func init() { lists["queue"] = queueMutants }

// queueMutants are the safeguards of package queue.
var queueMutants = []mutant{}
