package mutants

func init() { lists["framework"] = frameworkMutants }

// frameworkMutants are the safeguards of package framework.
var frameworkMutants = []mutant{}
