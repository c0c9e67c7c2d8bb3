// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"github.com/spf13/pflag"
)

// AddFlags adds the flags of a proxy. What c holds is their defaults, so that it is DefaultConfig in most cases.
func (c *Config) AddFlags(flags *pflag.FlagSet) {
	c.addRouting(flags)
	c.addFailover(flags)
	c.addLimits(flags)
	c.TLS.addFlags(flags)
}

func (c *Config) addRouting(flags *pflag.FlagSet) {
	flags.StringVar(&c.Key, "proxy-key", c.Key,
		"key of a request: text with "+variableNames)
	flags.StringVar((*string)(&c.EmptyKey), "proxy-empty-key", string(c.EmptyKey),
		"what becomes of a request for which no variable of the key has a value: reject (400), path (the path is\n"+
			"its key), or keep (the key is the text alone, one backend gets them all)")
	flags.StringSliceVar(&c.Features, "proxy-features", c.Features, "features that the backend of every request must have, such as eu,ssd")
	flags.StringVar(&c.FeaturesHeader, "proxy-features-header", c.FeaturesHeader,
		"header in which a client can ask for more features, such as X-Ring-Features; none where empty")
	flags.Uint16Var(&c.DefaultPort, "proxy-default-port", c.DefaultPort, "port of backends whose address has none")
	flags.StringVar((*string)(&c.Host), "proxy-host", string(c.Host), "Host header that a backend gets: preserve (that of the request) or backend (its address)")
	flags.StringVar((*string)(&c.Forwarded), "proxy-forwarded", string(c.Forwarded),
		"X-Forwarded-For, -Host and -Proto: replace (what the proxy saw), append (to what the client sent, which\n"+
			"is trusted), or off")
	flags.StringVar(&c.Via, "proxy-via", c.Via, "name with which the proxy adds itself to Via; none where empty")
	flags.StringVar(&c.DecisionHeader, "proxy-decision-header", c.DecisionHeader,
		"response header that says which backend answered and by which ring, such as X-Ringwright-Decision; none\nwhere empty")
	flags.BoolVar(&c.HTTP2, "proxy-http2", c.HTTP2, "accept HTTP/2 without TLS, and use HTTP/2 to backends")
	flags.StringVar(&c.CacheStatusHeader, "proxy-cache-status-header", c.CacheStatusHeader,
		"response header by which answers are counted as HIT, MISS, EXPIRED, STALE, BYPASS or OTHER, such as\nX-Cache-Status or Cache-Status; not counted so where empty")
	flags.BoolVar(&c.BackendMetrics, "proxy-backend-metrics", c.BackendMetrics, "count requests by backend: a few series for each")
}

func (c *Config) addFailover(flags *pflag.FlagSet) {
	flags.IntVar(&c.Attempts, "proxy-attempts", c.Attempts, "how often a request is tried; 1 never fails over")
	flags.IntVar(&c.ReplayBytes, "proxy-replay-bytes", c.ReplayBytes, "how much of a request body is kept so that it can be sent again")
	flags.Int64Var(&c.ReplayTotal, "proxy-replay-total", c.ReplayTotal, "how much is kept of all request bodies together; beyond it they are not sent again")
	flags.DurationVar(&c.PassOver, "proxy-pass-over", c.PassOver,
		"for how long a backend that cannot be reached is passed over; doubles with each failure in a row")
	flags.DurationVar(&c.MaxPassOver, "proxy-max-pass-over", c.MaxPassOver, "the longest of these times")
	flags.DurationVar(&c.DialTimeout, "proxy-dial-timeout", c.DialTimeout, "for a connection to a backend, and as long again for TLS")
	flags.DurationVar(&c.ResponseTimeout, "proxy-response-timeout", c.ResponseTimeout, "from the end of the request to the beginning of the answer")
	flags.DurationVar(&c.IdleTimeout, "proxy-idle-timeout", c.IdleTimeout, "for a body or a tunnel that rests, on either side")
	flags.DurationVar(&c.Timeout, "proxy-timeout", c.Timeout, "for a request as a whole; 0 has no limit. Tunnels are not bound by it")
	flags.DurationVar(&c.HeaderTimeout, "proxy-header-timeout", c.HeaderTimeout, "for a client to send a header")
	flags.DurationVar(&c.KeepAlive, "proxy-keepalive", c.KeepAlive,
		"how long connections to backends are kept for the next request; make it shorter than the backends do")
}

func (c *Config) addLimits(flags *pflag.FlagSet) {
	flags.IntVar(&c.MaxRequests, "proxy-max-requests", c.MaxRequests, "requests at a time")
	flags.IntVar(&c.MaxConnections, "proxy-max-connections", c.MaxConnections, "connections to all backends together")
	flags.IntVar(&c.MaxBackendConnections, "proxy-max-backend-connections", c.MaxBackendConnections, "requests at a time to one backend, and so connections")
	flags.IntVar(&c.IdleConnections, "proxy-idle-connections", c.IdleConnections, "connections to one backend that are kept for the next request")
	flags.IntVar(&c.MaxHeaderBytes, "proxy-max-header-bytes", c.MaxHeaderBytes, "bytes of a header, of a request or of an answer")
	flags.Int64Var(&c.MaxBody, "proxy-max-body", c.MaxBody, "bytes of a request body; 0 has no limit")
}

func (c *TLSConfig) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&c.Enabled, "proxy-backend-tls", c.Enabled, "use TLS to backends, 1.2 or later")
	flags.StringVar(&c.CAFile, "proxy-backend-ca", c.CAFile, "file with the certificates that backends' are signed by; the system's where empty")
	flags.StringVar(&c.CertFile, "proxy-backend-cert", c.CertFile, "file with the certificate that the proxy shows to backends")
	flags.StringVar(&c.KeyFile, "proxy-backend-key", c.KeyFile, "file with the key of that certificate")
	flags.StringVar(&c.ServerName, "proxy-backend-server-name", c.ServerName,
		"name that a backend's certificate must have: address (the host of its address), identity (the host of its\n"+
			"identity), or name:NAME")
}
