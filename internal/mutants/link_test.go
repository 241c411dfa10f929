package mutants

func init() { lists["link"] = linkMutants }

// linkMutants are the safeguards of package internal/link.
var linkMutants = []mutant{}
