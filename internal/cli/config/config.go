package config

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/internal/terminal"
)

// configCommand is what the subcommands of "config" have in common.
type configCommand struct {
	cli.ConnectionFlags
	path    string
	version int64 // --if
	note    string
}

// useValue connects, and does one thing with the value of a NAME.
func (c *configCommand) useValue(cmd *cobra.Command, name string,
	do func(context.Context, *framework.Client, *config.Value[[]byte]) error) error {
	var err error
	if c.path, err = cli.PathOf("config", name); err != nil {
		return err
	}
	client, err := c.ConnectClient(cmd)
	if err != nil {
		return err
	}
	defer cli.CloseClient(c.Streams, client)
	return cli.WithHint(cli.EndBySignal(cmd.Context(), do(cmd.Context(), client,
		config.New(client, c.path, codec.Bytes()))), framework.ErrOutcomeUnknown,
		"see whether it was written: lockstep config history NAME")
}

// addSetFlags adds the flags of the subcommands that write.
func (c *configCommand) addSetFlags(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&c.version, "if", 0, "write only if the value has this version; 0: only if there is no value")
	cmd.Flags().StringVar(&c.note, "note", "", "the reason of the change, for the history")
}

func (c *configCommand) setOptions(cmd *cobra.Command) (opts []config.SetOption) {
	if cmd.Flags().Changed("if") {
		opts = append(opts, config.WithExpectedVersion(c.version))
	}
	if cmd.Flags().Changed("note") {
		opts = append(opts, config.WithNote(c.note))
	}
	return opts
}

func newConfigGet(streams *cli.Streams) *cobra.Command {
	c := &configCommand{}
	cmd := &cobra.Command{
		Use:   "get NAME [flags]",
		Short: "Print a value",
		Long: `Print a value: its bytes as they are, or escaped if standard output is a terminal. --json prints
the version, too. The exit code is 1 if there is no value.`,
		Example: "  lockstep config get limits > limits.json",
		Args:    cli.CheckNameAlone,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			return c.useValue(cmd, args[0],
				func(ctx context.Context, _ *framework.Client, v *config.Value[[]byte]) error {
					now, err := v.Load(ctx)
					if err != nil {
						return err
					}
					if c.JSON {
						return cli.PrintResult(streams.Out, true, sharedreport.NewRecord(c.path,
							config.Record{Version: now.Version, Written: now.Since, Data: now.Value}))
					}
					return printBytes(streams, now.Value)
				})
		}),
	}
	c.ConnectionFlags.AddConnectionFlags(streams, cmd)
	return cmd
}

// printBytes prints bytes as they are, or escaped at a terminal, which could take them for
// commands.
func printBytes(streams *cli.Streams, data []byte) error {
	if terminal.Is(streams.Out) {
		_, err := fmt.Fprintln(streams.Out, cli.EscapeUnprintable(strings.TrimSuffix(string(data), "\n")))
		return err
	}
	_, err := streams.Out.Write(data)
	return err
}

// missingJSON is what is printed of a value that does not exist.
type missingJSON struct {
	Path    string `json:"path"`
	Version int64  `json:"version"`
	Missing bool   `json:"missing"`
}

func newConfigSet(streams *cli.Streams) *cobra.Command {
	c := &configCommand{}
	cmd := &cobra.Command{
		Use:   "set NAME [VALUE] [flags]",
		Short: "Write a value",
		Long: `Write a value: the argument, or standard input. If the reply is lost, lockstep finds out whether
the value was written. With --if the exit code is 1 if the value has another version.

lockstep does not validate the value. Programs validate what they read: they keep the last good value.`,
		Example: `  lockstep config set limits '{"rate":20}' --note "twice the rate"
  lockstep config set limits --if 4294967312 < limits.json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			data, err := valueOf(cmd.Context(), streams, args)
			if err != nil {
				return err
			}
			return c.useValue(cmd, args[0],
				func(ctx context.Context, _ *framework.Client, v *config.Value[[]byte]) error {
					return v.Set(ctx, data, c.setOptions(cmd)...)
				})
		}),
	}
	c.ConnectionFlags.AddConnectionFlags(streams, cmd)
	c.addSetFlags(cmd)
	return cmd
}

// valueOf returns the VALUE of a command line, or standard input if there is none.
func valueOf(ctx context.Context, streams *cli.Streams, args []string) ([]byte, error) {
	if len(args) == 2 {
		return []byte(args[1]), nil
	}
	return cli.ReadFileOrInput(ctx, streams, "-")
}

func newConfigEdit(streams *cli.Streams) *cobra.Command {
	c := &configCommand{}
	cmd := &cobra.Command{
		Use:   "edit NAME [flags]",
		Short: "Change a value in an editor",
		Long: `Change a value in $VISUAL, $EDITOR or vi. It is written only over the version that was edited: if
another client has written the value meanwhile, the exit code is 1, and the edited text stays in a file.`,
		Example: `  lockstep config edit limits --note "twice the rate"`,
		Args:    cli.CheckNameAlone,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			return c.useValue(cmd, args[0],
				func(ctx context.Context, _ *framework.Client, v *config.Value[[]byte]) error {
					return c.edit(ctx, v)
				})
		}),
	}
	c.ConnectionFlags.AddConnectionFlags(streams, cmd)
	cmd.Flags().StringVar(&c.note, "note", "", "the reason of the change, for the history")
	return cmd
}

// edit lets the user edit the value in a file, and writes it if it was changed.
func (c *configCommand) edit(ctx context.Context, v *config.Value[[]byte]) error {
	now, err := v.Load(ctx)
	if err != nil && !errors.Is(err, config.ErrNoValue) {
		return err
	}
	file, err := os.CreateTemp("", "lockstep-config-*") // for this user alone
	if err != nil {
		return err
	}
	name := file.Name()
	_, err = file.Write(now.Value)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = runEditor(ctx, c.Streams, name)
	}
	edited, unread := os.ReadFile(name)
	if unread == nil && bytes.Equal(edited, now.Value) {
		if err == nil {
			c.PrintNotice("%s stays as it is", c.path)
		}
		return cmp.Or(err, os.Remove(name))
	}
	err = cmp.Or(err, unread)
	if err == nil {
		err = v.Set(ctx, edited, config.WithExpectedVersion(now.Version), config.WithNote(c.note))
	}
	if err != nil {
		c.PrintNotice("the edited text is in %s", name)
		return err
	}
	return os.Remove(name)
}

// runEditor runs the user's editor, which may have arguments, on a file.
func runEditor(ctx context.Context, streams *cli.Streams, name string) error {
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	words := strings.Fields(editor)
	if len(words) == 0 {
		words = []string{"vi"}
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], name)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = cli.CloseTimeout
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams.In, streams.Out, streams.Err
	if err := cmd.Run(); err != nil {
		if cli.EndedBySignal(ctx) {
			return context.Cause(ctx)
		}
		return fmt.Errorf("editor %q: %w; set VISUAL or EDITOR to another one", words[0], err)
	}
	return nil
}

func newConfigWatch(streams *cli.Streams) *cobra.Command {
	c := &configCommand{}
	cmd := &cobra.Command{
		Use:   "watch NAME [flags]",
		Short: "Print a value now and after each change",
		Long: `Print a value now and after each change, a line each: version, time and value. Unprintable characters
are escaped; a missing value has "-" for its version. The command goes on while the servers cannot be
reached, skips values that were replaced meanwhile, and runs until a signal.`,
		Example: "  lockstep config watch limits --json",
		Args:    cli.CheckNameAlone,
		RunE: cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
			return cli.EndQuietlyOnSignal(cmd.Context(),
				c.useValue(cmd, args[0],
					func(ctx context.Context, client *framework.Client, _ *config.Value[[]byte]) error {
						for node, err := range client.Follow(ctx, c.path) {
							if err == nil {
								err = c.printNode(node)
							}
							if err != nil {
								return err
							}
						}
						return nil
					}))
		}),
	}
	c.ConnectionFlags.AddConnectionFlags(streams, cmd)
	return cmd
}

func (c *configCommand) printNode(node framework.NodeValue) error {
	if !node.Exists {
		return cli.PrintResult(c.Out, c.JSON, missingJSON{Path: c.path, Missing: true}, "-")
	}
	return cli.PrintResult(c.Out, c.JSON, sharedreport.NewRecord(c.path,
		config.Record{Version: node.Zxid, Written: node.Stat.Mtime, Data: node.Data}),
		node.Zxid, node.Stat.Mtime.UTC().Format(time.RFC3339), cli.InOneLine(string(node.Data)))
}
