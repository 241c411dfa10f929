package mutants

func init() { lists["watchdog"] = watchdogMutants }

// watchdogMutants are the safeguards of package internal/watchdog.
var watchdogMutants = []mutant{}
