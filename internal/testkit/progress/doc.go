// Command progress runs "go test" and shows its progress:
//
//	go run ./internal/testkit/progress -packages 41 -- go test -race ./...
//
// It prints a numbered line for each package that has ended, and every half minute the tests that
// run. It shows the output of failed tests only, and at the end which packages have taken longest.
// If the race detector itself has crashed in each failed package, it tests these packages once
// more. It ends with the exit code of "go test".
package main
