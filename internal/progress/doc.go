// Command progress runs "go test" and shows how far it is:
//
//	go run ./internal/progress -packages 41 -- go test -race ./...
//
// It prints a line for each package that has ended, numbered, and every half minute what still runs. Of what tests print it shows that of
// failed tests alone. It ends with the exit code of "go test".
package main
