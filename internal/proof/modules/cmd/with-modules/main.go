// Command with-modules runs a command in an environment in which the go command uses the modules of
// this checkout as a user gets them, from a proxy and without the workspace:
//
//	go run ./internal/proof/modules/cmd/with-modules -- go mod tidy
//
// It must be run in the root of the checkout, or with -checkout; the command runs in the present
// directory.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"

	"github.com/lockstep-go/lockstep/internal/proof/modules"
)

const notRun = 125

func main() {
	checkout := flag.String("checkout", ".", "root of the checkout")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: with-modules [-checkout DIR] -- COMMAND [ARGUMENT...]")
		os.Exit(notRun)
	}
	code, err := run(*checkout, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "with-modules:", err)
	}
	os.Exit(code)
}

func run(checkout string, command []string) (code int, err error) {
	dir, err := os.MkdirTemp("", "with-modules-")
	if err != nil {
		return notRun, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	environ, err := modules.Environ(checkout, dir)
	if err != nil {
		return notRun, err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ, os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}
