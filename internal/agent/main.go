// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/pflag"

	"github.com/ringwright/ringwright/internal/apisource"
)

// Exit codes of Main.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Main runs the agent with a command line until ctx ends, and returns the exit code: 0 after a clean stop, 1 where the
// agent failed, 2 where the command line is wrong. Help and version go to stdout, everything else to stderr. Version is
// that of the build, "" where the build does not say.
func Main(ctx context.Context, args []string, version string, stdout, stderr io.Writer) int {
	parsed, err := parseFlags(args, stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return exitOK
	}
	version = buildVersion(version)
	if err == nil && parsed.showVersion {
		_, err = fmt.Fprintln(stdout, version)
		return exitCode(err, stderr)
	}
	if err == nil {
		parsed.config.Logger, err = parsed.logger(stderr)
	}
	if err == nil {
		_, err = parsed.config.complete()
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "agent: %v\n\"agent --help\" lists the flags.\n", err)
		return exitUsage
	}
	parsed.config.Version = version
	if parsed.config.Source == SourceAPI {
		apisource.TakeLogs(parsed.config.Logger)
	}
	return exitCode(Run(ctx, parsed.config), stderr)
}

func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	_, _ = fmt.Fprintf(stderr, "agent: %v\n", err)
	return exitFailed
}

// buildVersion returns the version that was linked in, else what the Go toolchain recorded.
func buildVersion(linked string) string {
	if linked != "" {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
