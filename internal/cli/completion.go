package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	CompletionTime  = 1500 * time.Millisecond // the shell waits for this time at most
	MaxCompletions  = 500
	maxNamesToOffer = 10_000 // a directory with more children is not listed
)

// namedKinds maps subcommands to the directory below /lockstep of their first NAME.
var namedKinds = map[string]string{
	"lock": "locks", "locks": "locks", "revoke": "locks", "release": "locks",
	"elect": "elections", "elections": "elections", "elections transfer": "elections",
	"jobs": "jobs", "jobs trigger": "jobs", "jobs pause": "jobs", "jobs resume": "jobs", "jobs remove": "jobs",
	"runs": "jobs", "cron": "jobs",
	"members": "groups", "members cordon": "groups", "members uncordon": "groups", "members drain": "groups",
	"services": "services", "register": "services", "disable": "services", "enable": "services", "id next": "ids",
	"id worker":     "ids",
	"barrier enter": "barriers", "gate raise": "gates", "gate lower": "gates", "gate wait": "gates",
	"barriers": "barriers", "gates": "gates",
	"latch count": "latches", "latch wait": "latches", "latch reset": "latches", "latch ls": "latches",
}

// OfferValues makes the shells' completion offer these values of a flag.
func OfferValues(cmd *cobra.Command, flag string, values ...string) {
	OfferValuesBy(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// OfferFiles makes the shells' completion offer files for a flag.
func OfferFiles(cmd *cobra.Command, flag string) {
	OfferValuesBy(cmd, flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
}

func OfferValuesBy(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag is there, and has no other values
	}
}

// CompleteCommands makes the shells' completion offer names from the servers.
func CompleteCommands(root *cobra.Command) {
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
		CompleteCommands(cmd)
	}
}

// completeNames offers the names below a directory of /lockstep, or below the path that was begun.
// It offers none if the servers do not answer within completionTime.
func completeNames(kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault // a command and its files
		}
		ctx, cancel := context.WithTimeout(context.Background(), CompletionTime)
		defer cancel()
		return FindCompletions(ctx, cmd, "/lockstep/"+kind+"/", begun),
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

// FindCompletions returns the names in the directory of what was begun, each as a whole NAME.
func FindCompletions(ctx context.Context, cmd *cobra.Command, base, begun string) (offered []string) {
	client, err := ConnectSilently(ctx, cmd)
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
	stat, err := client.Exists(ctx, path)
	if err != nil || stat.NumChildren > maxNamesToOffer {
		return nil
	}
	names, _, err := client.Children(ctx, path)
	if err != nil {
		return nil
	}
	for _, name := range SortNames(names) {
		whole := within + name
		if IsOfferable(whole, begun) {
			offered = append(offered, whole)
		}
	}
	return slices.Clip(offered[:min(len(offered), MaxCompletions)])
}

// IsOfferable reports whether a shell can be offered a name for what was begun. Shells put a name
// on the command line as it is, and run what they find in it, such as $(...): anybody who may
// create a node would have commands run by those who press TAB.
func IsOfferable(name, begun string) bool { return strings.HasPrefix(name, begun) && isShellWord(name) }
