// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/routing"
)

// VersionReport is what "version" prints.
type VersionReport struct {
	// Version is the version of the module, "(devel)" where the program was not built from a released one.
	Version string `json:"version"`
	// Revision is the commit that it was built from; absent where that is not known.
	Revision string `json:"revision,omitempty"`
	// Go is the version of Go, Platform operating system and architecture.
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// API is the version of the HashRings that "build" takes, Routing that of the routing files that are read.
	API     string `json:"api"`
	Routing string `json:"routing"`
}

func newVersionCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of what it reads",
		Args:  noArguments,
	}
	output := addFormat(cmd, "o", formatTable, formatJSON, formatYAML)
	cmd.RunE = func(*cobra.Command, []string) error {
		v := version()
		return output.print(streams.Out, v, func(out io.Writer) {
			rows(out, func(w io.Writer) {
				printf(w, "version\t%s\n", v.Version)
				if v.Revision != "" {
					printf(w, "revision\t%s\n", v.Revision)
				}
				printf(w, "go\t%s %s\nHashRings\t%s\nrouting.json\t%s\n", v.Go, v.Platform, v.API, v.Routing)
			})
		})
	}
	return cmd
}

func version() VersionReport {
	v := VersionReport{
		Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		API: v1alpha1.GroupVersion.String(), Routing: routing.APIVersion,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			v.Revision = setting.Value
		}
	}
	return v
}
