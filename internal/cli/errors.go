// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ringwright/ringwright/internal/crdschema"
)

// Exit codes of the process.
const (
	// ExitOK: the command did what it was asked to.
	ExitOK = 0
	// ExitFailure: it could not, or a check of "verify" failed.
	ExitFailure = 1
	// ExitUsage: the command line is wrong; nothing was done.
	ExitUsage = 2
	// ExitMoves is that of "plan" and "diff" where keys move. As with "kubectl diff", what is above 1 is then an error.
	ExitMoves = 1
	// ExitPlanFailed is that of "plan" and "diff" where they could not tell.
	ExitPlanFailed = 3
)

// codeError asks for an exit code of its own.
type codeError struct {
	code int
	// err is nil where there is nothing to say but the code.
	err error
}

func (e *codeError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

// usageError says that the command line is wrong.
type usageError struct {
	command string
	message string
}

func (e *usageError) Error() string { return e.message }

func usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{command: cmd.CommandPath(), message: fmt.Sprintf(format, args...)}
}

// manifestError says that the API server would refuse a HashRing. It is printed with a line for each violation.
type manifestError struct {
	ring      string
	rejection *crdschema.Rejection
}

func (e *manifestError) Error() string {
	return fmt.Sprintf("HashRing %s is invalid: %v", e.ring, e.rejection)
}

// report prints err and returns the exit code that it asks for.
func report(out io.Writer, err error) int {
	var usage *usageError
	var manifest *manifestError
	var coded *codeError
	code := ExitFailure
	if errors.As(err, &coded) {
		code, err = coded.code, coded.err
	}
	switch {
	case err == nil && coded != nil:
	case err == nil:
		return ExitOK
	case errors.As(err, &usage):
		printf(out, "error: %v\nSee '%s --help'.\n", usage, usage.command)
		return ExitUsage
	case errors.As(err, &manifest):
		printf(out, "error: HashRing %s is invalid:\n", manifest.ring)
		for _, violation := range manifest.rejection.Violations {
			printf(out, "  %s\n", violation)
		}
		if manifest.rejection.Incomplete {
			printf(out, "Not every rule could be checked: correct these first.\n")
		}
	default:
		printf(out, "error: %v\n", err)
	}
	return code
}

// printf writes to a stream whose failure nobody could be told of: the error stream, or a buffer in memory.
func printf(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
