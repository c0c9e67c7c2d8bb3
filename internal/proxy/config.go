// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ringwright/ringwright/internal/movement"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// EmptyKey says what becomes of a request for which no variable of the key template has a value.
type EmptyKey string

const (
	// EmptyKeyReject answers it with 400.
	EmptyKeyReject EmptyKey = "reject"
	// EmptyKeyPath routes it by its path.
	EmptyKeyPath EmptyKey = "path"
	// EmptyKeyKeep routes it by what the template gives, as "hash" of NGINX does: all of them to one backend.
	EmptyKeyKeep EmptyKey = "keep"
)

// HostPolicy says which Host header a backend gets.
type HostPolicy string

const (
	// HostPreserve passes on the one of the request.
	HostPreserve HostPolicy = "preserve"
	// HostBackend sends the address of the backend.
	HostBackend HostPolicy = "backend"
)

// ForwardedPolicy says what a backend gets as X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto.
type ForwardedPolicy string

const (
	// ForwardedReplace removes what the client sent and says what the proxy saw.
	ForwardedReplace ForwardedPolicy = "replace"
	// ForwardedAppend adds the client to X-Forwarded-For and leaves the others as they came, where they did. It trusts the client.
	ForwardedAppend ForwardedPolicy = "append"
	// ForwardedOff removes them.
	ForwardedOff ForwardedPolicy = "off"
)

// Config says how a proxy routes. DefaultConfig returns one that can be used.
type Config struct {
	// Key is the key template, see ParseTemplate.
	Key      string
	EmptyKey EmptyKey
	// Features are asked of the backend of every request. FeaturesHeader, where set, names a header in which a client can ask
	// for more, with commas between them.
	Features       []string
	FeaturesHeader string

	// DefaultPort is that of an address without a port.
	DefaultPort uint16
	Host        HostPolicy
	Forwarded   ForwardedPolicy
	// Via, where set, is the name with which the proxy adds itself to the Via header, in both directions.
	Via string
	// DecisionHeader, where set, names the response header that says who answered.
	DecisionHeader string

	// Attempts is how often a request is tried, 1 to ringclient.MaxOwners.
	Attempts int
	// ReplayBytes is how much of a request body is kept until an answer comes, so that it can be sent again.
	ReplayBytes int
	// ReplayTotal is how much is kept so of all bodies together. One for which nothing is left is passed on and not sent again.
	ReplayTotal int64
	// PassOver is for how long a backend is passed over that cannot be reached; it doubles with each failure in a row, up to
	// MaxPassOver.
	PassOver, MaxPassOver time.Duration

	// DialTimeout bounds making a connection, and as long again the TLS handshake.
	DialTimeout time.Duration
	// ResponseTimeout is from the end of the request to the beginning of the answer.
	ResponseTimeout time.Duration
	// IdleTimeout is how long a body or a tunnel may rest, on either side.
	IdleTimeout time.Duration
	// Timeout bounds a request from its header to the last byte of the answer; 0 does not. Tunnels are not bound by it.
	Timeout time.Duration
	// HeaderTimeout is how long a client may take to send a header.
	HeaderTimeout time.Duration
	// KeepAlive is how long a connection to a backend is kept without a request.
	KeepAlive time.Duration

	// MaxRequests is how many requests run at a time, MaxConnections how many connections to backends are open,
	// MaxBackendConnections how many of those to one backend, IdleConnections how many of these are kept without a request.
	MaxRequests, MaxConnections, MaxBackendConnections, IdleConnections int
	// MaxHeaderBytes bounds the header of a request, and that of an answer.
	MaxHeaderBytes int
	// MaxBody bounds the body of a request; 0 does not.
	MaxBody int64

	// HTTP2 accepts HTTP/2 from clients and uses it towards backends: where they offer it with TLS, and always without.
	HTTP2 bool
	TLS   TLSConfig
	// CacheStatusHeader, where set, names the response header in which backends say whether they had an answer; answers are counted by it.
	CacheStatusHeader string
	// Movement, where set, is told which backend each key got.
	Movement *movement.Table
	// BackendMetrics counts requests by backend.
	BackendMetrics bool
	// Logger receives what happens; nil logs nothing.
	Logger *slog.Logger
}

// DefaultConfig returns the defaults of the flags.
func DefaultConfig() Config {
	return Config{
		Key: "${uri}", EmptyKey: EmptyKeyReject,
		DefaultPort: 80, Host: HostPreserve, Forwarded: ForwardedReplace,
		Attempts: 3, ReplayBytes: 64 << 10, ReplayTotal: 16 << 20, PassOver: time.Second, MaxPassOver: 10 * time.Second,
		DialTimeout: time.Second, ResponseTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		HeaderTimeout: 5 * time.Second, KeepAlive: 30 * time.Second,
		MaxRequests: 8192, MaxConnections: 8192, MaxBackendConnections: 1024, IdleConnections: 64,
		MaxHeaderBytes: 64 << 10,
		TLS:            TLSConfig{ServerName: ServerNameAddress},
	}
}

// Limits of the configuration.
const (
	minTimeout     = time.Millisecond
	maxReplayBytes = 16 << 20
	maxHeaderBytes = 1 << 20
)

// Check returns an error that names the flag, the value and the limit of the first setting that cannot be used.
func (c *Config) Check() error {
	if _, err := ParseTemplate(c.Key); err != nil {
		return fmt.Errorf("--proxy-key: %w", err)
	}
	for _, check := range []func() error{c.checkWords, c.checkNumbers, c.checkDurations, c.TLS.check} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkWords() error {
	switch {
	case !slices.Contains([]EmptyKey{EmptyKeyReject, EmptyKeyPath, EmptyKeyKeep}, c.EmptyKey):
		return fmt.Errorf("--proxy-empty-key is %q, not reject, path or keep", c.EmptyKey)
	case !slices.Contains([]HostPolicy{HostPreserve, HostBackend}, c.Host):
		return fmt.Errorf("--proxy-host is %q, not preserve or backend", c.Host)
	case !slices.Contains([]ForwardedPolicy{ForwardedReplace, ForwardedAppend, ForwardedOff}, c.Forwarded):
		return fmt.Errorf("--proxy-forwarded is %q, not replace, append or off", c.Forwarded)
	case len(c.Features) > ring.MaxFeatures || slices.Contains(c.Features, ""):
		return fmt.Errorf("--proxy-features is %q, not up to %d names with commas between them", strings.Join(c.Features, ","), ring.MaxFeatures)
	}
	for flag, name := range map[string]string{
		"--proxy-features-header": c.FeaturesHeader, "--proxy-decision-header": c.DecisionHeader, "--proxy-via": c.Via,
		"--proxy-cache-status-header": c.CacheStatusHeader,
	} {
		if name != "" && !isToken(name) {
			return fmt.Errorf("%s is %q, not a name of letters, digits and !#$%%&'*+-.^_`|~", flag, name)
		}
	}
	return nil
}

func (c *Config) checkNumbers() error {
	for _, n := range []struct {
		flag        string
		value       int64
		least, most int64
	}{
		{"--proxy-default-port", int64(c.DefaultPort), 1, math.MaxUint16},
		{"--proxy-attempts", int64(c.Attempts), 1, ringclient.MaxOwners},
		{"--proxy-replay-bytes", int64(c.ReplayBytes), 0, maxReplayBytes},
		{"--proxy-replay-total", c.ReplayTotal, int64(c.ReplayBytes), math.MaxInt64},
		{"--proxy-max-requests", int64(c.MaxRequests), 1, math.MaxInt32},
		{"--proxy-max-connections", int64(c.MaxConnections), 1, math.MaxInt32},
		{"--proxy-max-backend-connections", int64(c.MaxBackendConnections), 1, math.MaxInt32},
		{"--proxy-idle-connections", int64(c.IdleConnections), 0, math.MaxInt32},
		{"--proxy-max-header-bytes", int64(c.MaxHeaderBytes), 1 << 10, maxHeaderBytes},
		{"--proxy-max-body", c.MaxBody, 0, math.MaxInt64},
	} {
		if n.value < n.least || n.value > n.most {
			return fmt.Errorf("%s is %d, not %d to %d", n.flag, n.value, n.least, n.most)
		}
	}
	return nil
}

func (c *Config) checkDurations() error {
	for _, d := range []struct {
		flag  string
		value time.Duration
		least time.Duration
		most  time.Duration
	}{
		{"--proxy-pass-over", c.PassOver, minTimeout, ringclient.MaxPassOver},
		{"--proxy-max-pass-over", c.MaxPassOver, c.PassOver, ringclient.MaxPassOver},
		{"--proxy-dial-timeout", c.DialTimeout, minTimeout, math.MaxInt64},
		{"--proxy-response-timeout", c.ResponseTimeout, minTimeout, math.MaxInt64},
		{"--proxy-idle-timeout", c.IdleTimeout, minTimeout, math.MaxInt64},
		{"--proxy-header-timeout", c.HeaderTimeout, minTimeout, math.MaxInt64},
		{"--proxy-keepalive", c.KeepAlive, minTimeout, math.MaxInt64},
		{"--proxy-timeout", c.Timeout, 0, math.MaxInt64},
	} {
		switch {
		case d.value < d.least:
			return fmt.Errorf("%s is %v, not at least %v", d.flag, d.value, d.least)
		case d.value > d.most:
			return fmt.Errorf("%s is %v, not at most %v", d.flag, d.value, d.most)
		}
	}
	return nil
}
