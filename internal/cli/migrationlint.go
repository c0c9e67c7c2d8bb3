// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/internal/crdschema"
	"github.com/ringwright/ringwright/internal/gate"
	"github.com/ringwright/ringwright/internal/migrationapi"
)

const migrationLintLong = `Check the manifests of RingMigrations without a cluster: as the API server would at
their creation (schema and CEL rules), as the operator does (a datacenter in two
stages, gates that do not exist), and for what is allowed and rarely meant, which is a
warning.

All RingMigrations of the file are checked; other documents are passed over.

Exit codes: 0 no errors; 1 errors, or with --strict warnings; 2 the command line is
wrong.`

const migrationLintExample = `  # Before a commit
  kubectl hashring migration lint -f migration.yaml --strict

  # What GitOps would apply
  kustomize build overlays/prod | kubectl hashring migration lint -f -`

// LintReport is what "migration lint" prints.
type LintReport struct {
	// Migrations are the RingMigrations that were checked, as namespace and name, in the order of the file.
	Migrations []string `json:"migrations"`
	// Findings are what was found.
	Findings []LintFinding `json:"findings"`
	Errors   int           `json:"errors"`
	Warnings int           `json:"warnings"`
}

// LintFinding is an error or a warning.
type LintFinding struct {
	Migration string `json:"migration"`
	// Severity is error or warning.
	Severity string `json:"severity"`
	// Message names the field and its value.
	Message string `json:"message"`
}

const (
	lintError   = "error"
	lintWarning = "warning"
)

type migrationLintOptions struct {
	streams   genericiooptions.IOStreams
	file      string
	namespace string
	strict    bool
	output    *formatFlag
}

func newMigrationLintCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &migrationLintOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "lint -f FILE",
		Short:   "Check manifests of migrations, without a cluster",
		Long:    migrationLintLong,
		Example: migrationLintExample,
		Args:    noArguments,
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "manifest of the RingMigrations, - for the standard input")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace of those whose manifest has none (default \"default\")")
	flags.BoolVar(&o.strict, "strict", false, "fail on warnings as well")
	o.output = addFormat(cmd, "o", formatTable, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.file == "" {
			return usagef(cmd, "no manifest given: -f names the file, or - for the standard input")
		}
		return o.run(cmd.Context())
	}
	return cmd
}

func (o *migrationLintOptions) run(ctx context.Context) error {
	found, err := migrationManifests(o.file, "", o.streams.In)
	if err != nil {
		return err
	}
	report := &LintReport{Findings: []LintFinding{}}
	for _, object := range found {
		if err := report.lint(ctx, object, o.namespace); err != nil {
			return err
		}
	}
	if err := o.output.print(o.streams.Out, report, report.print); err != nil {
		return err
	}
	if report.Errors > 0 || o.strict && report.Warnings > 0 {
		return fmt.Errorf("%s: %s", o.file, report.counts())
	}
	return nil
}

// lint checks one manifest. The error is for what cannot be checked at all.
func (r *LintReport) lint(ctx context.Context, object *unstructured.Unstructured, namespace string) error {
	m, err := admitMigration(ctx, object, namespace)
	name := object.GetNamespace() + "/" + object.GetName()
	r.Migrations = append(r.Migrations, name)
	var rejection *crdschema.Rejection
	switch {
	case errors.As(err, &rejection):
		for _, violation := range rejection.Violations {
			r.add(name, lintError, violation)
		}
		return nil
	case err != nil:
		return err
	}
	spec, err := migrationapi.Spec(m.Spec)
	if err != nil {
		r.add(name, lintError, err.Error())
	} else if err := spec.Validate(); err != nil {
		r.add(name, lintError, "spec."+err.Error())
	}
	for _, g := range m.Spec.Gates {
		if err := gate.Validate(g); err != nil {
			r.add(name, lintError, "spec."+err.Error())
		}
	}
	for _, warning := range lintWarnings(m.Spec) {
		r.add(name, lintWarning, warning)
	}
	return nil
}

func (r *LintReport) add(migration, severity, message string) {
	r.Findings = append(r.Findings, LintFinding{migration, severity, message})
	if severity == lintError {
		r.Errors++
	} else {
		r.Warnings++
	}
}

func (r *LintReport) counts() string {
	return fmt.Sprintf("%s, %s", plural(r.Errors, "error", "errors"), plural(r.Warnings, "warning", "warnings"))
}

func (r *LintReport) print(out io.Writer) {
	for _, name := range r.Migrations {
		printf(out, "%s %s\n", migrationKind, name)
		if !slices.ContainsFunc(r.Findings, func(f LintFinding) bool { return f.Migration == name }) {
			printf(out, "  nothing is wrong\n")
		}
		for _, f := range r.Findings {
			if f.Migration == name {
				printf(out, "  %s: %s\n", f.Severity, f.Message)
			}
		}
	}
	printf(out, "%s\n", r.counts())
}
