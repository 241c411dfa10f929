package mutants

func init() { lists["scheduler"] = schedulerMutants }

// schedulerMutants are the safeguards of package scheduler.
var schedulerMutants = []mutant{}
