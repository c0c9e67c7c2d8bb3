// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ringwright/ringwright/internal/proxy"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// DatacenterVariable is the environment variable that says where the agent runs where no flag does.
const DatacenterVariable = "RINGWRIGHT_DATACENTER"

// invocation is a parsed command line.
type invocation struct {
	config      Config
	socketMode  string
	force       string
	logFormat   string
	logLevel    string
	showVersion bool
}

const usage = `Answers lookups in a consistent-hash ring from a mounted directory, over HTTP and gRPC:

  GET  /v1/lookup?key=…&features=eu,ssd&n=2   who owns a key (keyHex=… for raw bytes)
  POST /v1/lookup                             who owns each of up to 1,000 keys
  GET  /v1/status                             which ring is loaded, and what went wrong last
  GET, PUT, DELETE /v1/override               break-glass: use one ring instead of the split
  GET  /metrics, /healthz, /readyz
`

// parseFlags reads the command line. It writes the help to out where that is asked for, and then returns pflag.ErrHelp.
func parseFlags(args []string, out io.Writer) (invocation, error) {
	var v invocation
	flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
	flags.SetOutput(out)
	flags.SortFlags = false
	flags.Usage = func() { _, _ = fmt.Fprintf(out, "%s\nFlags:\n%s", usage, flags.FlagUsages()) }
	v.addSourceFlags(flags)
	v.addListenerFlags(flags)
	v.config.NGINX.AddFlags(flags)
	v.addProxyFlags(flags)
	v.addStopFlags(flags)
	flags.StringVar(&v.logFormat, "log-format", "json", "json or text")
	flags.StringVar(&v.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.BoolVar(&v.showVersion, "version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		return v, err
	}
	if flags.NArg() > 0 {
		return v, fmt.Errorf("unexpected argument %q: agent takes flags only", flags.Arg(0))
	}
	if v.config.ProxyListen == "" {
		if name := changed(flags, "proxy-"); name != "" {
			return v, fmt.Errorf("--%s is given without --proxy-listen: there is no proxy", name)
		}
	}
	if err := v.config.NGINX.CheckFlags(flags); err != nil {
		return v, err
	}
	return v, v.convert()
}

// changed returns the first flag by name that was given and begins with prefix, "" where there is none.
func changed(flags *pflag.FlagSet, prefix string) string {
	var names []string
	flags.Visit(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, prefix) {
			names = append(names, f.Name)
		}
	})
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

// addSourceFlags adds the flags of where the ring comes from and what is made of it.
func (v *invocation) addSourceFlags(flags *pflag.FlagSet) {
	flags.StringVar(&v.config.Dir, "dir", "",
		"directory with routing.json and the snapshots: a mount of the ring's ConfigMaps, or what\n"+
			"\"kubectl hashring build\" wrote (required)")
	flags.StringVar(&v.config.Source, "source", SourceDir,
		"dir or api: who writes --dir. With api the agent does, from the ConfigMaps of --hashring, which it\n"+
			"watches: that takes a second where kubelet takes a minute, and a Role")
	v.config.API.AddFlags(flags)
	flags.DurationVar(&v.config.PollInterval, "poll-interval", ringclient.DefaultPollInterval,
		"how often to read the directory without a file event, at least "+ringclient.MinPollInterval.String())
	flags.Uint64Var(&v.config.MaxPoints, "max-points", ring.DefaultMaxPoints,
		"how many points of a ring that is published as a recipe are built; one with more is refused. Each\n"+
			"takes 2 to 4 bytes, and about 11 while the ring is built")
	flags.StringVar(&v.config.Datacenter, "datacenter", "",
		"where the agent runs, by which a split says how many keys go to the candidate; without the flag\n$"+
			DatacenterVariable+" says it")
	flags.StringVar(&v.force, "force", "",
		"stable or candidate: break-glass, use that ring for all keys instead of the split")
}

// addListenerFlags adds the flags of who can ask, and how many at a time.
func (v *invocation) addListenerFlags(flags *pflag.FlagSet) {
	flags.StringVar(&v.config.Listen, "listen", DefaultListen,
		"address for the programs beside the agent, or \"off\". On another than loopback whoever can connect\n"+
			"can ask, and /v1/override is not served")
	flags.StringVar(&v.config.UnixSocket, "unix-socket", "", "path of a Unix socket for the same")
	flags.StringVar(&v.config.StatusListen, "status-listen", "",
		"address for status, metrics and probes only, such as 0.0.0.0:9465: kubelet, Prometheus and the\n"+
			"operator come from outside the pod")
	flags.StringVar(&v.config.GRPCListen, "grpc-listen", "", "address for lookups over gRPC, such as 127.0.0.1:9466")
	flags.StringVar(&v.config.GRPCUnixSocket, "grpc-unix-socket", "", "path of a Unix socket for lookups over gRPC")
	flags.StringVar(&v.socketMode, "unix-socket-mode", fmt.Sprintf("%#o", DefaultSocketMode), "permissions of the Unix sockets")
	flags.IntVar(&v.config.MaxConnections, "max-connections", DefaultMaxConnections,
		"how many connections each listener has at a time, but that of the status; more are answered with\n"+
			"status 503 and closed")
	flags.IntVar(&v.config.StatusMaxConnections, "status-max-connections", DefaultStatusMaxConnections,
		"how many connections the status listener has at a time; for a new one the oldest is closed")
}

// addProxyFlags adds the flags of the reverse proxy.
func (v *invocation) addProxyFlags(flags *pflag.FlagSet) {
	flags.StringVar(&v.config.ProxyListen, "proxy-listen", "",
		"address of the reverse proxy, such as 127.0.0.1:8080: each request goes to the owner of its key")
	v.config.Proxy = proxy.DefaultConfig()
	v.config.Proxy.AddFlags(flags)
}

// addStopFlags adds the flags of how the agent stops.
func (v *invocation) addStopFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&v.config.DrainDelay, "drain-delay", 0,
		"how long the listeners stay open after SIGTERM or SIGINT, while /readyz says that the agent goes.\n"+
			"A native sidecar is stopped after the programs that it serves and needs none")
	flags.DurationVar(&v.config.ShutdownTimeout, "shutdown-timeout", DefaultShutdownTimeout,
		"how long requests may take to end after that")
}

// convert fills in what flags give as text.
func (v *invocation) convert() error {
	v.config.Datacenter = cmp.Or(v.config.Datacenter, os.Getenv(DatacenterVariable))
	mode, err := strconv.ParseUint(v.socketMode, 8, 32)
	if err != nil || mode == 0 || fs.FileMode(mode)&^fs.ModePerm != 0 {
		return fmt.Errorf("--unix-socket-mode is %q, not an octal number up to 0777", v.socketMode)
	}
	v.config.SocketMode = fs.FileMode(mode)
	if v.force != "" {
		force, known := parseForce(v.force)
		if !known {
			return fmt.Errorf("--force is %q, not stable or candidate", v.force)
		}
		v.config.Force = force
	}
	return nil
}

// parseForce returns what the name of a ring forces.
func parseForce(name string) (ringclient.Force, bool) {
	for _, force := range []ringclient.Force{ringclient.ForceStable, ringclient.ForceCandidate} {
		if name == force.String() {
			return force, true
		}
	}
	return ringclient.ForceNone, false
}

// logger returns the logger that the flags ask for, writing to out.
func (v *invocation) logger(out io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(v.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level is %q, not debug, info, warn or error", v.logLevel)
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: withUnits}
	switch v.logFormat {
	case "json":
		return slog.New(slog.NewJSONHandler(out, options)), nil
	case "text":
		return slog.New(slog.NewTextHandler(out, options)), nil
	default:
		return nil, fmt.Errorf("--log-format is %q, not json or text", v.logFormat)
	}
}

// withUnits has durations say their unit: in JSON they would be bare numbers of nanoseconds.
func withUnits(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
