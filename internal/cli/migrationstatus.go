// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

const migrationStatusLong = `Show where a migration is: its stages with what is done (✔), under way (▶), to come
(·) and taken back (↩), the clean time of the present step, the share and the
acknowledgements of each datacenter, what the gates say, and what holds.

With --watch it is shown again on every change, until the migration has succeeded, is
rolled back, or is deleted: on a terminal in place, otherwise one below the other.
Colours are for terminals without NO_COLOR in the environment.

It takes permission to get RingMigrations, with --watch also to watch them.`

const migrationStatusExample = `  # Where is it?
  kubectl hashring migration status v1-to-v3 -n cdn

  # Follow it to its end
  kubectl hashring migration status v1-to-v3 -n cdn --watch`

type migrationStatusOptions struct {
	streams genericiooptions.IOStreams
	watch   bool
	all     bool
	screen  screen
	config  *genericclioptions.ConfigFlags
}

func newMigrationStatusCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &migrationStatusOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "status NAME [-w]",
		Short:   "Show where a migration is, as a tree",
		Long:    migrationStatusLong,
		Example: migrationStatusExample,
		Args:    oneMigration,
	}
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "show it again on every change, until it ends")
	cmd.Flags().BoolVar(&o.all, "all", false, "a line for every datacenter, however many there are")
	o.config, _ = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		live, err := newLiveMigration(o.config, args[0])
		if err != nil {
			return err
		}
		o.screen = screenOf(streams.Out)
		return o.run(cmd.Context(), live)
	}
	return cmd
}

func (o *migrationStatusOptions) run(ctx context.Context, live liveMigration) error {
	if !o.watch {
		object, err := live.get(ctx)
		if err != nil {
			return err
		}
		return o.show(live, object)
	}
	shown := false
	return live.follow(ctx, func(object *v1alpha1.RingMigration) (bool, error) {
		if object == nil {
			_, err := io.WriteString(o.streams.Out, live.String()+" is gone.\n")
			return true, err
		}
		if shown && o.screen.height == 0 {
			if _, err := io.WriteString(o.streams.Out, "\n--- "+live.now().UTC().Format(time.RFC3339)+"\n"); err != nil {
				return true, err
			}
		}
		shown = true
		return ended(migrationView{object}), o.show(live, object)
	})
}

// ended says whether nothing more is to be expected.
func ended(v migrationView) bool {
	return v.observed() && (v.phase() == v1alpha1.MigrationSucceeded || v.phase() == v1alpha1.MigrationRolledBack)
}

func (o *migrationStatusOptions) show(live liveMigration, object *v1alpha1.RingMigration) error {
	tree := migrationTree{migrationView{object}, palette{o.screen.colours}, live.now(), live.command, o.all}
	var text strings.Builder
	tree.print(&text)
	shown := text.String()
	if o.watch {
		shown = o.screen.redraw(shown)
	}
	_, err := io.WriteString(o.streams.Out, shown)
	return err
}

// screen is what output goes to. Its zero value is no terminal.
type screen struct {
	// height is how many lines it has, 0 where it is no terminal.
	height  int
	colours bool
}

func screenOf(out io.Writer) screen {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return screen{}
	}
	_, height, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return screen{}
	}
	return screen{height: height, colours: os.Getenv("NO_COLOR") == ""}
}

// redraw returns what shows text in place of what the screen shows; lines beyond its end are left out.
func (s screen) redraw(text string) string {
	if s.height == 0 {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	if most := max(s.height-1, 1); len(lines) > most {
		lines = append(lines[:most-1], "…\n")
	}
	return "\x1b[H" + strings.ReplaceAll(strings.Join(lines, ""), "\n", "\x1b[K\n") + "\x1b[J"
}
