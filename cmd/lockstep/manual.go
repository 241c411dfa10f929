package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/lockstep-go/lockstep/internal/cli"
)

func newManual(streams *cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write the manual pages, one for each command",
		Long: `Write the manual pages into a directory, one for each command, from the texts of --help. The
directory is created.`,
		Example: "  lockstep man ./man/man1 && man -M ./man lockstep-lock",
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			if err := writeManual(streams, args[0]); err != nil {
				return fmt.Errorf("the manual pages cannot be written: %w", err)
			}
			return nil
		}),
	}
}

// writeManual writes a page for each command. Pages of one release are the same on all machines:
// they have no date.
func writeManual(streams *cli.Streams, dir string) error {
	root := newRoot(streams)
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Title: "LOCKSTEP", Section: "1", Source: "lockstep",
		Manual: "Lockstep", Date: new(time.Time)}, dir)
}
