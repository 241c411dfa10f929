package mutants

func init() { lists["election"] = electionMutants }

// electionMutants are the safeguards of package election.
var electionMutants = []mutant{}
