package zktest

// TB is the part of testing.TB that Start and Member need. It is declared here so that
// programs can link this package without package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}
