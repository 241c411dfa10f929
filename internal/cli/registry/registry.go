// Package registry has the subcommands of services.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/registry"
)

// Commands are the subcommands of this package.
func Commands(streams *cli.Streams) []*cobra.Command {
	return []*cobra.Command{newServices(streams), newRegister(streams), newDisable(streams), newEnable(streams)}
}

func newServices(streams *cli.Streams) *cobra.Command {
	c := &cli.ConnectionFlags{}
	cmd := &cobra.Command{
		Use:   "services [NAME] [flags]",
		Short: "Show the registered services, or the instances of one",
		Long: `Show the services below /lockstep/services with the number of their instances, or with a NAME the
instances of one service. Instances of Java programs (Curator's x-discovery) are shown, too. Nothing
is written. The exit code is 1 if the service has no instance that is enabled.`,
		Example: "  lockstep services\n  lockstep services billing --json",
		Args:    cobra.MaximumNArgs(1),
	}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		return useRegistry(cmd, c, args, func(ctx context.Context, r *registry.Registry, service string) error {
			if service == "" {
				return printServices(ctx, streams, r, c.JSON)
			}
			return printInstances(ctx, streams, r, service, c.JSON)
		})
	})
	c.AddConnectionFlags(streams, cmd)
	return cmd
}

// useRegistry connects, and calls a function with the registry and the service of the first
// argument, a NAME.
func useRegistry(cmd *cobra.Command, c *cli.ConnectionFlags, args []string,
	do func(context.Context, *registry.Registry, string) error) error {
	base, service := cli.ServicesDir, ""
	if len(args) > 0 {
		path, err := cli.PathOf("services", args[0])
		if err != nil {
			return err
		}
		if base, service = znode.Split(path); base == "/" {
			return cli.UsageError("the NAME %q has no directory: give a path such as /services/billing", args[0])
		}
	}
	return c.WithClient(cmd, func(ctx context.Context, client *framework.Client) error {
		return do(ctx, registry.New(client, base), service)
	})
}

func printServices(ctx context.Context, streams *cli.Streams, r *registry.Registry, asJSON bool) error {
	names, err := r.Services(ctx)
	if err != nil {
		return err
	}
	if len(names) == 0 && !asJSON {
		streams.PrintNotice("no services below %s", r.Path())
	}
	return cli.PrintEach(streams, names, cli.NewTable("SERVICE", "ENABLED", "DISABLED"), asJSON,
		func(name string) (any, []cli.Cell,
			error) {
			all, err := r.Instances(ctx, name)
			v := sharedreport.NewService(znode.Join(r.Path(), name), all)
			return v, []cli.Cell{cli.BoldCell(cli.QuoteName(name)), cli.PlainCell(strconv.Itoa(v.Enabled)),
				cli.PlainCell(strconv.Itoa(len(all) - v.Enabled))}, err
		})
}

func printInstances(ctx context.Context, streams *cli.Streams, r *registry.Registry, service string,
	asJSON bool) error {
	all, err := r.Instances(ctx, service)
	if err != nil {
		return err
	}
	v := sharedreport.NewService(znode.Join(r.Path(), service), all)
	if asJSON {
		err = cli.PrintResult(streams.Out, true, v)
	} else {
		t := cli.NewTable("ID", "ADDRESS", "STATE", "WEIGHT", "SINCE", "METADATA")
		for _, i := range all {
			state := cli.GreenCell("enabled")
			if i.Disabled != "" {
				state = cli.YellowCell("disabled: " + cli.ShortenText(i.Disabled))
			}
			t.AddRow(cli.BoldCell(cli.ShortenText(i.ID)), cli.PlainCell(i.HostPort(false)), state,
				cli.PlainCell(strconv.Itoa(i.Weight)), cli.PlainCell(cli.FormatSince(i.Registered, time.Now())),
				cli.DimCell(cli.FormatMetadata(i.Metadata)))
		}
		err = t.PrintTo(streams.Out)
	}
	if err == nil && v.Enabled == 0 {
		return cli.ExitWith(cli.ExitMissing, fmt.Errorf("%s has no instance that is enabled", v.Path), "")
	}
	return err
}

func newRegister(streams *cli.Streams) *cobra.Command {
	c := &cli.ConnectionFlags{}
	i := registry.Instance{}
	cmd := &cobra.Command{
		Use:   "register NAME ADDRESS:PORT [flags]",
		Short: "Register an instance of a service until a signal",
		Long: `Register an instance of a service until a signal comes, and register it again after a lost session.
After the signal lockstep disables the instance, and unregisters it two seconds later, so that
callers notice.`,
		Example: "  lockstep register billing 10.0.0.7:8080 --weight 2 --metadata version=1.4",
		Args:    cobra.ExactArgs(2),

		Annotations: map[string]string{cli.KeepsNode: "true"},
	}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		host, port, err := net.SplitHostPort(args[1])
		if err != nil {
			return cli.UsageError("%q is not ADDRESS:PORT: %w", args[1], err)
		}
		i.Address = host
		if i.Port, err = strconv.Atoi(port); err != nil {
			return cli.UsageError("%q is not ADDRESS:PORT: the port is no number", args[1])
		}
		if i.Weight == 0 { // the registry's default
			return cli.UsageError("--weight 0: it must be 1 to 1000; lockstep disable keeps calls away from an instance")
		}
		return cli.EndQuietlyOnSignal(cmd.Context(),
			useRegistry(cmd, c, args, func(ctx context.Context, r *registry.Registry, service string) error {
				i.Service = service
				g, err := r.Register(ctx, i)
				if errors.Is(err, framework.ErrInvalid) {
					return cli.UsageError("%w", err)
				}
				if err != nil {
					return err
				}
				if err := cli.PrintResult(streams.Out, c.JSON,
					sharedreport.NewService(znode.Join(r.Path(), service), []registry.Instance{g.Instance()}),
					g.Instance().ID); err != nil {
					return err
				}
				select {
				case <-ctx.Done():
				case <-g.Done():
					return g.Err()
				}
				return cli.WithCode(g.Drain(ctx)) // the exit code tells that this failed, also after a signal
			}))
	})
	c.AddConnectionFlags(streams, cmd)
	cmd.Flags().StringVar(&i.ID, "id", "", "the instance's id (default a new one)")
	cmd.Flags().IntVar(&i.Weight, "weight", 1, "the instance's share of the calls, 1 to 1000")
	cmd.Flags().StringToStringVar(&i.Metadata, "metadata", nil, "metadata for callers, such as version=1.4")
	return cmd
}

func newDisable(streams *cli.Streams) *cobra.Command {
	reason := ""
	cmd := changeCommand(streams, "disable", "Keep calls away from an instance",
		`Keep calls away from an instance of a service. The instance stays registered. It stays disabled when
its session is lost, until its process ends.`, "  lockstep disable billing 4f1c --reason debugging",
		func(ctx context.Context, r *registry.Registry, service, id string) error {
			return r.Disable(ctx, service, id, reason)
		})
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, which others can see")
	return cmd
}

func newEnable(streams *cli.Streams) *cobra.Command {
	return changeCommand(streams, "enable", "Let an instance get calls again",
		"Let an instance of a service get calls again. If its own health check fails, it is disabled again.",
		"  lockstep enable billing 4f1c",
		func(ctx context.Context, r *registry.Registry, service, id string) error {
			return r.Enable(ctx, service, id)
		})
}

// changeCommand is "disable" or "enable".
func changeCommand(streams *cli.Streams, name, short, long, example string,
	change func(context.Context, *registry.Registry, string, string) error) *cobra.Command {
	c := &cli.ConnectionFlags{}
	cmd := &cobra.Command{Use: name + " NAME ID [flags]", Short: short, Long: long, Example: example,
		Args: cobra.ExactArgs(2)}
	cmd.RunE = cli.WithExitCodes(func(cmd *cobra.Command, args []string) error {
		return useRegistry(cmd, c, args, func(ctx context.Context, r *registry.Registry, service string) error {
			return change(ctx, r, service, args[1])
		})
	})
	c.AddConnectionFlags(streams, cmd)
	return cmd
}
