package mutants

func init() { lists["locks"] = locksMutants }

// locksMutants are the safeguards of package locks.
var locksMutants = []mutant{
	{
		name: "numbers are compared as plain integers", file: "locks/place.go", test: "TestSeeAgreesWithOrder",
		old: "return p.seq-q.seq < 0", new: "return p.seq < q.seq",
	},
}
