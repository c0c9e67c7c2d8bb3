// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"time"
	"unicode/utf8"

	"github.com/ringwright/ringwright/internal/apisource"
	"github.com/ringwright/ringwright/internal/nginxconf"
	"github.com/ringwright/ringwright/internal/proxy"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

const (
	// DefaultListen is where an agent listens for the programs beside it unless it is told otherwise: on loopback.
	DefaultListen = "127.0.0.1:9464"
	// Off as an address to listen on says that there is to be no such listener.
	Off = "off"
	// DefaultSocketMode are the permissions of a Unix socket: for its user and its group.
	DefaultSocketMode fs.FileMode = 0o660
	// DefaultMaxConnections is how many connections each listener has at a time.
	DefaultMaxConnections = 4096
	// DefaultStatusMaxConnections is how many the status listener has.
	DefaultStatusMaxConnections = 64
	// MinStatusMaxConnections is the least that it can have: one is open, and one place is kept for the next.
	MinStatusMaxConnections = 2
	// HardMaxConnections is the largest number that can be asked for.
	HardMaxConnections = 1 << 20
	// DefaultShutdownTimeout is how long requests may take to end once the listeners are closed.
	DefaultShutdownTimeout = 10 * time.Second
	// MaxDrainDelay is the largest Config.DrainDelay: kubelet would kill the process before that.
	MaxDrainDelay = time.Hour
)

// Config says what an agent serves.
type Config struct {
	// Dir is the directory with the ring; see ringclient.Open. Required.
	Dir string
	// Source says who writes Dir: SourceDir or SourceAPI; "" is SourceDir.
	Source string
	// API is what SourceAPI follows. Its Dir and Logger are those of the agent.
	API apisource.Config
	// NGINX is what is written for NGINX, nothing where it has no output. Its Logger is that of the agent.
	NGINX nginxconf.Config
	// Listen is the TCP address for the programs beside the agent; "" is DefaultListen, Off none.
	Listen string
	// UnixSocket is the path of a Unix socket for the same; "" is none.
	UnixSocket string
	// StatusListen is the TCP address for status, metrics and probes only, for kubelet, Prometheus and the operator; "" is none.
	StatusListen string
	// GRPCListen is the TCP address, and GRPCUnixSocket the path of the Unix socket, of lookups over gRPC; "" is none.
	GRPCListen, GRPCUnixSocket string
	// ProxyListen is the TCP address of the reverse proxy; "" is none. Proxy is how it routes; its Logger is that of the agent.
	ProxyListen string
	Proxy       proxy.Config
	// SocketMode are the permissions of the Unix sockets; 0 is DefaultSocketMode.
	SocketMode fs.FileMode
	// MaxConnections is how many connections each listener but that of the status has at a time, at most HardMaxConnections; 0 is
	// DefaultMaxConnections.
	MaxConnections int
	// StatusMaxConnections is how many the status listener has, MinStatusMaxConnections to HardMaxConnections; 0 is
	// DefaultStatusMaxConnections. A new one has the one closed on which nothing has happened for longest.
	StatusMaxConnections int
	// Datacenter is where the agent runs, "" where that is not known.
	Datacenter string
	// Force is what is used instead of the split from the start.
	Force ringclient.Force
	// PollInterval is how often Dir is read without a file event, at least ringclient.MinPollInterval; 0 is
	// ringclient.DefaultPollInterval.
	PollInterval time.Duration
	// MaxPoints is how many points are built for a recipe, 1 to ring.HardMaxPoints; 0 is ring.DefaultMaxPoints.
	MaxPoints uint64
	// DrainDelay is how long the listeners stay open after the agent was asked to stop, at most MaxDrainDelay.
	DrainDelay time.Duration
	// ShutdownTimeout is how long requests may take to end after that; 0 is DefaultShutdownTimeout.
	ShutdownTimeout time.Duration
	// Version is what the status gives as the agent's own version.
	Version string
	// Logger receives what happens; nil logs nothing.
	Logger *slog.Logger
	// Listening, where set, is called once for each listener, with the name that it has in metrics and its address, before any
	// request is answered.
	Listening func(name string, address net.Addr)

	// started is when the agent began.
	started time.Time
}

// complete returns the configuration with defaults in place of zero values.
func (c Config) complete() (Config, error) {
	c.started = time.Now()
	c.Listen = cmp.Or(c.Listen, DefaultListen)
	c.Source = cmp.Or(c.Source, SourceDir)
	c.SocketMode = cmp.Or(c.SocketMode, DefaultSocketMode)
	c.MaxConnections = cmp.Or(c.MaxConnections, DefaultMaxConnections)
	c.StatusMaxConnections = cmp.Or(c.StatusMaxConnections, DefaultStatusMaxConnections)
	c.MaxPoints = cmp.Or(c.MaxPoints, ring.DefaultMaxPoints)
	c.PollInterval = cmp.Or(c.PollInterval, ringclient.DefaultPollInterval)
	c.ShutdownTimeout = cmp.Or(c.ShutdownTimeout, DefaultShutdownTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.API.Dir, c.API.Logger = c.Dir, c.Logger
	c.NGINX.Logger = c.Logger
	c.Proxy.Logger = c.Logger
	if err := c.check(); err != nil {
		return c, err
	}
	return c, c.checkParts()
}

func (c Config) check() error {
	switch {
	case c.Dir == "":
		return errors.New("--dir is missing: the directory that the ring's ConfigMaps are mounted at")
	case c.Listen == Off && c.UnixSocket == "" && c.GRPCListen == "" && c.GRPCUnixSocket == "" && c.ProxyListen == "":
		return fmt.Errorf("--listen is %s and there is no other listener for lookups or for the proxy", Off)
	case c.UnixSocket != "" && c.UnixSocket == c.GRPCUnixSocket:
		return fmt.Errorf("--unix-socket and --grpc-unix-socket are both %s", c.UnixSocket)
	case c.SocketMode&^fs.ModePerm != 0:
		return fmt.Errorf("--unix-socket-mode is %#o, not at most 0777", uint32(c.SocketMode))
	case c.MaxConnections < 1 || c.MaxConnections > HardMaxConnections:
		return fmt.Errorf("--max-connections is %d, not 1 to %d", c.MaxConnections, HardMaxConnections)
	case c.StatusMaxConnections < MinStatusMaxConnections || c.StatusMaxConnections > HardMaxConnections:
		return fmt.Errorf("--status-max-connections is %d, not %d to %d", c.StatusMaxConnections, MinStatusMaxConnections, HardMaxConnections)
	case len(c.Datacenter) > routing.MaxDatacenterBytes:
		return fmt.Errorf("--datacenter is %q, which has %d bytes, not at most %d", c.Datacenter, len(c.Datacenter), routing.MaxDatacenterBytes)
	case !utf8.ValidString(c.Datacenter):
		return fmt.Errorf("--datacenter is %q, which is not UTF-8", c.Datacenter)
	case c.Datacenter == routing.AnyDatacenter:
		return fmt.Errorf("--datacenter is %q, which stands for all that have no entry of their own", c.Datacenter)
	case c.PollInterval < ringclient.MinPollInterval:
		return fmt.Errorf("--poll-interval is %v, not at least %v", c.PollInterval, ringclient.MinPollInterval)
	case c.MaxPoints > ring.HardMaxPoints:
		return fmt.Errorf("--max-points is %d, not at most %d", c.MaxPoints, ring.HardMaxPoints)
	case c.DrainDelay < 0 || c.DrainDelay > MaxDrainDelay:
		return fmt.Errorf("--drain-delay is %v, not 0s to %v", c.DrainDelay, MaxDrainDelay)
	case c.ShutdownTimeout < 0:
		return fmt.Errorf("--shutdown-timeout is %v, not above 0", c.ShutdownTimeout)
	}
	return nil
}
