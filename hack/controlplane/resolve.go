// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The values of -from.
const (
	fromAuto         = "auto"
	fromCache        = "cache"
	fromSource       = "source"
	fromSetupEnvtest = "setup-envtest"
)

var fromValues = []string{fromAuto, fromCache, fromSource, fromSetupEnvtest}

// assetsVariable is the variable by which envtest and its users name the directory.
const assetsVariable = "KUBEBUILDER_ASSETS"

// errUnavailable marks the error of a source that has nothing to offer, so that the
// next one is asked. Any other error ends the search: it needs a person.
var errUnavailable = errors.New("not available")

// errUnset is the quiet form of errUnavailable: nobody asked for this source.
var errUnset = fmt.Errorf("not set: %w", errUnavailable)

// A source is one place that may have the programs.
type source struct {
	name string
	// find returns a directory that has all programs in need.
	find func(ctx context.Context, need []string) (string, error)
}

// sources lists the sources that opts allows, in order of preference.
func sources(opts options, pins pins, c *cache, prog *progress) []source {
	env := source{assetsVariable, func(_ context.Context, need []string) (string, error) {
		return fromEnvironment(os.Getenv(assetsVariable), need)
	}}
	cached := source{"cache", func(_ context.Context, need []string) (string, error) {
		return c.lookup(need, pins.sourceEntry(), pins.archiveEntry())
	}}
	archives := &archiveSource{pins: pins, cache: c, prog: prog, index: opts.index}
	builder := &sourceBuild{pins: pins, cache: c, prog: prog, rebuild: opts.from == fromSource}
	all := map[string][]source{
		fromCache:        {cached},
		fromSetupEnvtest: {{fromSetupEnvtest, archives.find}},
		fromSource:       {{"build from source", builder.find}},
	}
	if opts.from != fromAuto {
		return all[opts.from]
	}
	list := append([]source{env}, all[fromCache]...)
	list = append(list, all[fromSetupEnvtest]...)
	return append(list, all[fromSource]...)
}

// resolve returns the directory of the first source that has it. A source that was
// asked in vain is told to note in one line, as the next one may take minutes.
func resolve(ctx context.Context, list []source, need []string, note func(string)) (string, error) {
	var failures []error
	for i, s := range list {
		dir, err := s.find(ctx, need)
		if err == nil {
			return dir, nil
		}
		err = fmt.Errorf("%s: %w", s.name, err)
		if !errors.Is(err, errUnavailable) {
			return "", err
		}
		if errors.Is(err, errUnset) {
			continue
		}
		failures = append(failures, err)
		if i+1 < len(list) {
			note(fmt.Sprintf("%v; trying %s", err, list[i+1].name))
		}
	}
	return "", fmt.Errorf("no source has %s: %w", strings.Join(need, ", "), errors.Join(failures...))
}

// fromEnvironment checks the directory that KUBEBUILDER_ASSETS names.
func fromEnvironment(dir string, need []string) (string, error) {
	if dir == "" {
		return "", errUnset
	}
	if !filepath.IsAbs(dir) {
		// Tests run in their package's directory, where a relative path means something else.
		return "", fmt.Errorf("%q must be an absolute path", dir)
	}
	if err := checkPrograms(dir, need); err != nil {
		return "", fmt.Errorf("%w (unset %s to use the cache or a build)", err, assetsVariable)
	}
	return dir, nil
}

// checkPrograms reports each program in need that is not an executable file in dir.
func checkPrograms(dir string, need []string) error {
	var errs []error
	for _, name := range need {
		errs = append(errs, checkExecutable(filepath.Join(dir, name)))
	}
	return errors.Join(errs...)
}

// checkExecutable follows links, as people link programs into one directory.
func checkExecutable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err // It names the path.
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not executable", path)
	}
	return nil
}
