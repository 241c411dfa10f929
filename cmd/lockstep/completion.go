package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	completionTime  = 1500 * time.Millisecond // the shell waits for this time at most
	maxCompletions  = 500
	maxNamesToOffer = 10_000 // a directory with more children is not listed
)

// namedKinds maps subcommands to the directory below /lockstep of their first NAME.
var namedKinds = map[string]string{
	"lock": "locks", "locks": "locks", "revoke": "locks", "release": "locks",
	"elect": "elections", "elections": "elections", "elections transfer": "elections",
	"jobs": "jobs", "jobs run": "jobs", "jobs pause": "jobs", "jobs resume": "jobs", "jobs remove": "jobs",
	"runs": "jobs", "cron": "jobs",
	"members": "groups", "members cordon": "groups", "members uncordon": "groups", "members drain": "groups",
	"services": "services", "register": "services", "disable": "services", "enable": "services", "id next": "ids",
	"id worker":     "ids",
	"barrier enter": "barriers", "gate raise": "gates", "gate lower": "gates", "gate wait": "gates",
	"barriers": "barriers", "gates": "gates",
	"latch count": "latches", "latch wait": "latches", "latch reset": "latches", "latch ls": "latches",
}

// offerValues makes the shells' completion offer these values of a flag.
func offerValues(cmd *cobra.Command, flag string, values ...string) {
	offerValuesBy(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// offerFiles makes the shells' completion offer files for a flag.
func offerFiles(cmd *cobra.Command, flag string) {
	offerValuesBy(cmd, flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
}

func offerValuesBy(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag is there, and has no other values
	}
}

// completeCommands makes the shells' completion offer names from the servers.
func completeCommands(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		kind, ok := namedKinds[strings.TrimPrefix(cmd.CommandPath(), "lockstep ")]
		switch parent := cmd.Parent().Name(); {
		case parent == "queue":
			kind, ok = "queues", true
		case parent == "config":
			kind, ok = "config", true
		}
		if strings.Contains(cmd.Use, " [ROOT]") && cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = completeRoot
		}
		if ok && cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = completeNames(kind)
		}
		completeCommands(cmd)
	}
}

// completeNames offers the names below a directory of /lockstep, or below the path that was begun.
// It offers none if the servers do not answer within completionTime.
func completeNames(kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault // a command and its files
		}
		ctx, cancel := context.WithTimeout(context.Background(), completionTime)
		defer cancel()
		return findCompletions(ctx, cmd, "/lockstep/"+kind+"/", begun),
			cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completeRoot offers the paths below the one that was begun.
func completeRoot(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if begun == "" {
		begun = "/"
	}
	return completeNames("")(cmd, nil, begun)
}

// findCompletions returns the names in the directory of what was begun, each as a whole NAME.
func findCompletions(ctx context.Context, cmd *cobra.Command, base, begun string) (offered []string) {
	client, err := connectSilently(ctx, cmd)
	if err != nil {
		return nil
	}
	defer client.Close(ctx) //nolint:errcheck // the session ends by itself
	within, dir := begun[:strings.LastIndexByte(begun, '/')+1], base
	if strings.HasPrefix(begun, "/") {
		dir = ""
	}
	path := strings.TrimSuffix(dir+within, "/")
	if path == "" {
		path = "/"
	}
	st, err := client.Exists(ctx, path)
	if err != nil || st.NumChildren > maxNamesToOffer {
		return nil
	}
	names, _, err := client.Children(ctx, path)
	if err != nil {
		return nil
	}
	for _, name := range sortNames(names) {
		whole := within + name
		if isOfferable(whole, begun) {
			offered = append(offered, whole)
		}
	}
	return slices.Clip(offered[:min(len(offered), maxCompletions)])
}

// isOfferable reports whether a shell can be offered a name for what was begun. Shells put a name
// on the command line as it is, and run what they find in it, such as $(...): anybody who may
// create a node would have commands run by those who press TAB.
func isOfferable(name, begun string) bool { return strings.HasPrefix(name, begun) && isShellWord(name) }
