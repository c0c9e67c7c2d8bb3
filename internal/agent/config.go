// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/pflag"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

const (
	// DefaultListen is where an agent listens unless it is told otherwise: on loopback.
	DefaultListen = "127.0.0.1:9464"
	// DefaultShutdownTimeout is how long requests may take to end after the agent was asked to stop.
	DefaultShutdownTimeout = 10 * time.Second
)

// Config says what an agent serves.
type Config struct {
	// Dir is the directory with the ring; see ringclient.Open. Required.
	Dir string
	// Listen is the TCP address to serve on; "" is DefaultListen.
	Listen string
	// PollInterval is how often Dir is read without a file event, at least ringclient.MinPollInterval; 0 is
	// ringclient.DefaultPollInterval.
	PollInterval time.Duration
	// MaxPoints is how many points are built for a recipe, 1 to ring.HardMaxPoints; 0 is ring.DefaultMaxPoints.
	MaxPoints uint64
	// ShutdownTimeout is how long requests may take to end when the agent stops; 0 is DefaultShutdownTimeout.
	ShutdownTimeout time.Duration
	// Version is what the status gives as the agent's own version.
	Version string
	// Logger receives what happens; nil logs nothing.
	Logger *slog.Logger
	// Listening, where set, is called once with the address that the agent serves on.
	Listening func(net.Addr)
}

// complete returns the configuration with defaults in place of zero values.
func (c Config) complete() (Config, error) {
	c.Listen = cmp.Or(c.Listen, DefaultListen)
	c.MaxPoints = cmp.Or(c.MaxPoints, ring.DefaultMaxPoints)
	c.PollInterval = cmp.Or(c.PollInterval, ringclient.DefaultPollInterval)
	c.ShutdownTimeout = cmp.Or(c.ShutdownTimeout, DefaultShutdownTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Dir == "":
		return c, errors.New("--dir is missing: the directory that the ring's ConfigMaps are mounted at")
	case c.PollInterval < ringclient.MinPollInterval:
		return c, fmt.Errorf("--poll-interval is %v, not at least %v", c.PollInterval, ringclient.MinPollInterval)
	case c.MaxPoints > ring.HardMaxPoints:
		return c, fmt.Errorf("--max-points is %d, not at most %d", c.MaxPoints, ring.HardMaxPoints)
	case c.ShutdownTimeout < 0:
		return c, fmt.Errorf("--shutdown-timeout is %v, not above 0", c.ShutdownTimeout)
	}
	return c, nil
}

// invocation is a parsed command line.
type invocation struct {
	config      Config
	logFormat   string
	logLevel    string
	showVersion bool
}

const usage = `Answers lookups in a consistent-hash ring over HTTP, from a mounted directory:

  GET /v1/lookup?key=…&features=eu,ssd&n=2   who owns a key (keyHex=… for raw bytes)
  GET /v1/status                             which ring is loaded, and what went wrong last
  GET /metrics, /healthz, /readyz
`

// parseFlags reads the command line. It writes the help to out where that is asked for, and then returns pflag.ErrHelp.
func parseFlags(args []string, out io.Writer) (invocation, error) {
	var v invocation
	flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
	flags.SetOutput(out)
	flags.SortFlags = false
	flags.Usage = func() { _, _ = fmt.Fprintf(out, "%s\nFlags:\n%s", usage, flags.FlagUsages()) }
	flags.StringVar(&v.config.Dir, "dir", "",
		"directory with routing.json and the snapshots: a mount of the ring's ConfigMaps, or what\n"+
			"\"kubectl hashring build\" wrote (required)")
	flags.StringVar(&v.config.Listen, "listen", DefaultListen,
		"address to serve on. Kubelet's probes and the operator come from outside the pod and need another\n"+
			"than loopback, such as 0.0.0.0:9464; whoever can connect can ask")
	flags.DurationVar(&v.config.PollInterval, "poll-interval", ringclient.DefaultPollInterval,
		"how often to read the directory without a file event, at least "+ringclient.MinPollInterval.String())
	flags.Uint64Var(&v.config.MaxPoints, "max-points", ring.DefaultMaxPoints,
		"how many points of a ring that is published as a recipe are built; one with more is refused. Each\n"+
			"takes 2 to 4 bytes, and about 11 while the ring is built")
	flags.DurationVar(&v.config.ShutdownTimeout, "shutdown-timeout", DefaultShutdownTimeout,
		"how long requests may take to end after SIGTERM or SIGINT")
	flags.StringVar(&v.logFormat, "log-format", "json", "json or text")
	flags.StringVar(&v.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.BoolVar(&v.showVersion, "version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		return v, err
	}
	if flags.NArg() > 0 {
		return v, fmt.Errorf("unexpected argument %q: agent takes flags only", flags.Arg(0))
	}
	return v, nil
}

// logger returns the logger that the flags ask for, writing to out.
func (v invocation) logger(out io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(v.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level is %q, not debug, info, warn or error", v.logLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	switch v.logFormat {
	case "json":
		return slog.New(slog.NewJSONHandler(out, options)), nil
	case "text":
		return slog.New(slog.NewTextHandler(out, options)), nil
	default:
		return nil, fmt.Errorf("--log-format is %q, not json or text", v.logFormat)
	}
}

// isLoopback says whether a listener can be reached from this host only.
func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
