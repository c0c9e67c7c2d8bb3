// SPDX-License-Identifier: Apache-2.0

package nginxconf

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ringwright/ringwright/pkg/ring"
)

const (
	// DefaultUpstream is the name of the upstream block where none is given.
	DefaultUpstream = "ring"
	// DefaultHash is the key where none is given.
	DefaultHash = "$request_uri"
	// DefaultMinInterval is how long lies between two reloads where nothing else is given.
	DefaultMinInterval = 5 * time.Second
	// MinInterval is the smallest Config.MinInterval.
	MinInterval = 100 * time.Millisecond
	// MaxHashBytes is how long the key can be.
	MaxHashBytes = 1024
)

// Config says what is written where, and how NGINX learns of it.
type Config struct {
	// Output is the file; "" writes none. Its directory must exist and be writable.
	Output string
	// Upstream is the name of the upstream block; "" is DefaultUpstream.
	Upstream string
	// Hash is the key as NGINX's directive "hash" takes it, at most MaxHashBytes with a variable in it; "" is DefaultHash.
	Hash string
	// Features are sets of features, each with commas between the names, that get an upstream block of their own: that of
	// "eu,ssd" is called Upstream.eu.ssd.
	Features []string
	// PIDFile holds the process of NGINX, which gets SIGHUP after a change.
	PIDFile string
	// ReloadCommand is run after a change instead, TestCommand before NGINX is told: when that fails, the file is put back.
	// Both are split at spaces; there is no shell.
	ReloadCommand, TestCommand string
	// MinInterval is the least time between two reloads, at least MinInterval; 0 is DefaultMinInterval.
	MinInterval time.Duration
	// Logger receives what happens; nil logs nothing.
	Logger *slog.Logger
}

// AddFlags defines the flags, all of which start with --nginx.
func (c *Config) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Output, "nginx-output", c.Output,
		"file to write the ring to as an upstream block of NGINX; for V1 rings. Without it, none is written")
	flags.StringVar(&c.Upstream, "nginx-upstream", DefaultUpstream, "name of the upstream block")
	flags.StringVar(&c.Hash, "nginx-hash", DefaultHash, "key of NGINX's directive \"hash\"")
	flags.StringArrayVar(&c.Features, "nginx-features", nil,
		"features with commas between them, such as eu,ssd, whose backends get an upstream block of their own,\n"+
			"called NAME.eu.ssd; can be given more than once")
	flags.StringVar(&c.PIDFile, "nginx-pid", c.PIDFile,
		"file with the process of NGINX, which gets SIGHUP after a change; it must be visible, as with\n"+
			"shareProcessNamespace, and of the same user")
	flags.StringVar(&c.ReloadCommand, "nginx-reload-command", c.ReloadCommand,
		"command to run after a change instead of --nginx-pid; there is no shell")
	flags.StringVar(&c.TestCommand, "nginx-test-command", c.TestCommand,
		"command, such as \"nginx -t\", that must succeed with a new file before NGINX is told; else the file\n"+
			"before comes back")
	flags.DurationVar(&c.MinInterval, "nginx-min-interval", DefaultMinInterval,
		"least time between two reloads, at least "+MinInterval.String())
}

// CheckFlags says which flag that was given has no effect, because nothing is to be written. The flags are parsed.
func (c *Config) CheckFlags(flags *pflag.FlagSet) error {
	if c.Output != "" {
		return nil
	}
	var err error
	flags.Visit(func(f *pflag.Flag) {
		if err == nil && strings.HasPrefix(f.Name, "nginx-") {
			err = fmt.Errorf("--%s is given without --nginx-output, so that nothing is written for NGINX", f.Name)
		}
	})
	return err
}

var upstreamForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// complete returns the configuration with defaults in place of zero values.
func (c Config) complete() (Config, error) {
	c.Upstream, c.Hash = cmp.Or(c.Upstream, DefaultUpstream), cmp.Or(c.Hash, DefaultHash)
	c.MinInterval = cmp.Or(c.MinInterval, DefaultMinInterval)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, c.check()
}

// Check says what of the configuration cannot be used.
func (c Config) Check() error {
	_, err := c.complete()
	return err
}

func (c Config) check() error {
	switch {
	case c.Output == "":
		return errors.New("--nginx-output is missing")
	case c.PIDFile != "" && c.ReloadCommand != "":
		return errors.New("--nginx-pid and --nginx-reload-command are both given: one of them tells NGINX")
	case !upstreamForm.MatchString(c.Upstream):
		return fmt.Errorf("--nginx-upstream is %q, not 1 to 63 letters, digits, dots, hyphens and underscores", c.Upstream)
	case len(c.Hash) > MaxHashBytes:
		return fmt.Errorf("--nginx-hash has %d bytes, the limit is %d", len(c.Hash), MaxHashBytes)
	case !strings.Contains(c.Hash, "$"):
		return fmt.Errorf("--nginx-hash is %q, without a variable: one backend would get all requests", c.Hash)
	case strings.ContainsFunc(c.Hash, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f }):
		return fmt.Errorf("--nginx-hash is %q, with a quote, a backslash or a control character", c.Hash)
	case c.MinInterval < MinInterval:
		return fmt.Errorf("--nginx-min-interval is %v, not at least %v", c.MinInterval, MinInterval)
	}
	return c.checkFeatures()
}

func (c Config) checkFeatures() error {
	seen := map[string]bool{}
	for _, text := range c.Features {
		names := strings.Split(text, ",")
		sorted := slices.Compact(slices.Sorted(slices.Values(names)))
		switch key := strings.Join(sorted, ","); {
		case slices.Contains(names, ""):
			return fmt.Errorf("--nginx-features is %q: a feature has no name", text)
		case len(names) > ring.MaxFeatures:
			return fmt.Errorf("--nginx-features is %q, of %d features, the limit is %d", text, len(names), ring.MaxFeatures)
		case len(sorted) != len(names) || seen[key]:
			return fmt.Errorf("--nginx-features is %q: it is given more than once", text)
		default:
			seen[key] = true
		}
	}
	return nil
}
