package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/registry"
)

// servicesDir is where services are registered.
const servicesDir = "/lockstep/services"

func newServices() *cobra.Command {
	c := &connectionFlags{}
	cmd := &cobra.Command{
		Use:   "services [NAME] [flags]",
		Short: "Show the registered services, or the instances of one",
		Long: `Show the services below /lockstep/services with the number of their instances, or with a NAME the
instances of one service. Instances of Java programs (Curator's x-discovery) are shown, too. Nothing
is written. The exit code is 1 if the service has no instance that is enabled.`,
		Example: "  lockstep services\n  lockstep services billing --json",
		Args:    cobra.MaximumNArgs(1),
	}
	cmd.RunE = withExitCodes(func(cmd *cobra.Command, args []string) error {
		return useRegistry(cmd, c, args, func(ctx context.Context, r *registry.Registry, service string) error {
			if service == "" {
				return printServices(ctx, r, c.json)
			}
			return printInstances(ctx, r, service, c.json)
		})
	})
	c.addConnectionFlags(cmd)
	return cmd
}

// useRegistry connects, and calls a function with the registry and the service of the first argument, a NAME.
func useRegistry(cmd *cobra.Command, c *connectionFlags, args []string, do func(context.Context, *registry.Registry, string) error) error {
	base, service := servicesDir, ""
	if len(args) > 0 {
		path, err := pathOf("services", args[0])
		if err != nil {
			return err
		}
		if base, service = znode.Split(path); base == "/" {
			return usageError("the NAME %q has no directory: give a path such as /services/billing", args[0])
		}
	}
	client, err := c.connectClient(cmd)
	if err != nil {
		return endQuietlyOnSignal(cmd.Context(), err)
	}
	defer hangUp(client)
	return registryCode(endQuietlyOnSignal(cmd.Context(), do(cmd.Context(), registry.New(client, base), service)))
}

// registryCode finds the exit codes of a registry's errors.
func registryCode(err error) error {
	switch {
	case errors.Is(err, registry.ErrNotFound):
		return &exitError{exitNotObtained, err, "see which there are: lockstep services NAME"}
	case errors.Is(err, registry.ErrTaken):
		return &exitError{exitNotObtained, err, ""}
	case errors.Is(err, registry.ErrInvalid):
		return &exitError{exitMismatch, err, ""}
	}
	return err
}

// serviceJSON is a service as JSON.
type serviceJSON struct {
	Path      string         `json:"path"`
	Enabled   int            `json:"enabled"`
	Instances []instanceJSON `json:"instances"`
}

// instanceJSON is an instance as JSON.
type instanceJSON struct {
	ID         string            `json:"id"`
	Address    string            `json:"address"`
	Port       int               `json:"port,omitempty"`
	SSLPort    int               `json:"ssl_port,omitempty"`
	Weight     int               `json:"weight"`
	Disabled   string            `json:"disabled,omitempty"`
	Registered time.Time         `json:"registered"`
	Metadata   map[string]string `json:"metadata,omitempty"`
}

func serviceView(path string, all []registry.Instance) serviceJSON {
	v := serviceJSON{Path: path, Instances: []instanceJSON{}}
	for _, i := range all {
		if i.Disabled == "" {
			v.Enabled++
		}
		v.Instances = append(v.Instances, instanceJSON{i.ID, i.Address, i.Port, i.SSLPort, i.Weight, i.Disabled, i.Registered, i.Metadata})
	}
	return v
}

func printServices(ctx context.Context, r *registry.Registry, asJSON bool) error {
	names, err := r.Services(ctx)
	if err != nil {
		return err
	}
	t := newTable("SERVICE", "ENABLED", "DISABLED")
	for _, name := range names {
		all, err := r.Instances(ctx, name)
		if err != nil {
			return err
		}
		v := serviceView(znode.Join(r.Path(), name), all)
		if asJSON {
			if err := printResult(os.Stdout, true, v); err != nil {
				return err
			}
			continue
		}
		t.addRow(boldCell(quoteName(name)), plainCell(strconv.Itoa(v.Enabled)), plainCell(strconv.Itoa(len(all)-v.Enabled)))
	}
	if len(names) == 0 && !asJSON {
		printNotice("no services below %s", r.Path())
	}
	return t.printTo(os.Stdout)
}

func printInstances(ctx context.Context, r *registry.Registry, service string, asJSON bool) error {
	all, err := r.Instances(ctx, service)
	if err != nil {
		return err
	}
	v := serviceView(znode.Join(r.Path(), service), all)
	if asJSON {
		err = printResult(os.Stdout, true, v)
	} else {
		t := newTable("ID", "ADDRESS", "STATE", "WEIGHT", "SINCE", "METADATA")
		for _, i := range all {
			state := greenCell("enabled")
			if i.Disabled != "" {
				state = yellowCell("disabled: " + shortenText(i.Disabled))
			}
			var pairs []string
			for _, key := range slices.Sorted(maps.Keys(i.Metadata)) {
				pairs = append(pairs, shortenText(key)+"="+shortenText(i.Metadata[key]))
			}
			t.addRow(boldCell(shortenText(i.ID)), plainCell(i.HostPort(false)), state, plainCell(strconv.Itoa(i.Weight)), plainCell(formatClock(i.Registered, time.Now())), dimCell(strings.Join(pairs, " ")))
		}
		err = t.printTo(os.Stdout)
	}
	if err == nil && v.Enabled == 0 {
		return &exitError{exitNotObtained, fmt.Errorf("%s has no instance that is enabled", v.Path), ""}
	}
	return err
}

func newRegister() *cobra.Command {
	c := &connectionFlags{}
	i := registry.Instance{}
	cmd := &cobra.Command{
		Use:   "register NAME ADDRESS:PORT [flags]",
		Short: "Register an instance of a service until a signal",
		Long: `Register an instance of a service, also again when the session was lost, until a signal ends
lockstep. Then the instance is disabled, and unregistered two seconds later, so that callers notice.`,
		Example: "  lockstep register billing 10.0.0.7:8080 --weight 2 --metadata version=1.4",
		Args:    cobra.ExactArgs(2),
	}
	cmd.RunE = withExitCodes(func(cmd *cobra.Command, args []string) error {
		host, port, err := net.SplitHostPort(args[1])
		if err != nil {
			return usageError("%q is no ADDRESS:PORT: %w", args[1], err)
		}
		i.Address = host
		if i.Port, err = strconv.Atoi(port); err != nil {
			return usageError("%q is no ADDRESS:PORT", args[1])
		}
		return useRegistry(cmd, c, args, func(ctx context.Context, r *registry.Registry, service string) error {
			i.Service = service
			g, err := r.Register(ctx, i)
			if err != nil {
				return err
			}
			if err := printResult(os.Stdout, c.json, serviceView(znode.Join(r.Path(), service), []registry.Instance{g.Instance()}), g.Instance().ID); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
			case <-g.Done():
				return g.Err()
			}
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*closeTimeout)
			defer cancel()
			return g.Drain(last)
		})
	})
	c.addConnectionFlags(cmd)
	cmd.Flags().StringVar(&i.ID, "id", "", "the instance's id; default: one of its own")
	cmd.Flags().IntVar(&i.Weight, "weight", 1, "the instance's share of the calls, 1 to 1000")
	cmd.Flags().StringToStringVar(&i.Metadata, "metadata", nil, "what callers may want to know, such as version=1.4")
	return cmd
}

func newDisable() *cobra.Command {
	reason := ""
	cmd := changeCommand("disable", "Keep calls away from an instance", `Keep calls away from an instance of a service, which stays registered. It stays disabled when its
session is lost, and is forgotten when its process ends.`, "  lockstep disable billing 4f1c --reason debugging",
		func(ctx context.Context, r *registry.Registry, service, id string) error {
			return r.Disable(ctx, service, id, reason)
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for others")
	return cmd
}

func newEnable() *cobra.Command {
	return changeCommand("enable", "Let an instance have calls again", "Let an instance of a service have calls again. If its own health check fails, it is disabled again.", "  lockstep enable billing 4f1c",
		func(ctx context.Context, r *registry.Registry, service, id string) error {
			return r.Enable(ctx, service, id)
		})
}

// changeCommand is "disable" or "enable".
func changeCommand(name, short, long, example string, change func(context.Context, *registry.Registry, string, string) error) *cobra.Command {
	c := &connectionFlags{}
	cmd := &cobra.Command{Use: name + " NAME ID [flags]", Short: short, Long: long, Example: example, Args: cobra.ExactArgs(2)}
	cmd.RunE = withExitCodes(func(cmd *cobra.Command, args []string) error {
		return useRegistry(cmd, c, args, func(ctx context.Context, r *registry.Registry, service string) error {
			return change(ctx, r, service, args[1])
		})
	})
	c.addConnectionFlags(cmd)
	return cmd
}
