// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// format is how a command prints its result.
type format string

const (
	formatTable format = "table"
	formatWide  format = "wide"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
	formatTSV   format = "tsv"
	formatCSV   format = "csv"
	formatPNG   format = "png"
	formatSVG   format = "svg"
)

// formatFlag is the value of --format. It is a usage error to give one that the command does not have.
type formatFlag struct {
	value   format
	allowed []format
}

func (f *formatFlag) String() string { return string(f.value) }

func (f *formatFlag) Type() string { return "format" }

func (f *formatFlag) Set(text string) error {
	if !slices.Contains(f.allowed, format(text)) {
		return fmt.Errorf("must be %s", f.choices())
	}
	f.value = format(text)
	return nil
}

func (f *formatFlag) choices() string {
	names := make([]string, len(f.allowed))
	for i, name := range f.allowed {
		names[i] = string(name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// addFormat adds --format to a command. Its shorthand is -o, as in kubectl, and --output means the same; but "build" has
// its directory there.
func addFormat(cmd *cobra.Command, shorthand string, allowed ...format) *formatFlag {
	f := &formatFlag{value: allowed[0], allowed: allowed}
	cmd.Flags().VarP(f, "format", shorthand, "how to print the result: "+f.choices())
	if shorthand == "o" {
		cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
			if name == "output" {
				name = "format"
			}
			return pflag.NormalizedName(name)
		})
	}
	_ = cmd.RegisterFlagCompletionFunc("format", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return strings.Fields(strings.NewReplacer(",", "", " or ", " ").Replace(f.choices())), cobra.ShellCompDirectiveNoFileComp
	}) // The error would be that the flag does not exist.
	return f
}

// print writes value as JSON or YAML, or lets table do it.
func (f *formatFlag) print(out io.Writer, value any, table func(io.Writer)) error {
	switch f.value {
	case formatJSON:
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case formatYAML:
		text, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	default:
		var text strings.Builder
		table(&text)
		_, err := io.WriteString(out, text.String())
		return err
	}
}

// rows writes lines of tab-separated cells as aligned columns.
func rows(out io.Writer, write func(w io.Writer)) {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	write(w)
	_ = w.Flush() // out is in memory.
}

// round keeps a number to so many digits behind the point: the last binary digits differ between architectures.
func round(x float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(x*scale) / scale
}

func percent(x float64, digits int) string {
	return strconv.FormatFloat(round(x*100, digits), 'f', digits, 64) + "%"
}

// printable returns text as it is where it can stand in a table, and quoted where a terminal could take it for a command
// or a column could get lost.
func printable(text []byte) string {
	s := string(text)
	if s == "" || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// dash shows that there is nothing to show.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
