package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/cli"
)

func newVersion(streams *cli.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: cli.WithExitCodes(func(*cobra.Command, []string) error {
			v := versionOf(debug.ReadBuildInfo())
			return cli.PrintResult(streams.Out, asJSON, v, fmt.Sprintf("lockstep %s %s %s", v.Version, v.Revision,
				v.Go))
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // of the repository; "unknown" if the program was not built from one
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
}

func versionOf(info *debug.BuildInfo, known bool) versionJSON {
	v := versionJSON{Version: "(devel)", Revision: "unknown", Go: runtime.Version()}
	if !known {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
