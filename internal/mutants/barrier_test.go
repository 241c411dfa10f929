package mutants

func init() { lists["barrier"] = barrierMutants }

// barrierMutants are the safeguards of package barrier.
var barrierMutants = []mutant{}
