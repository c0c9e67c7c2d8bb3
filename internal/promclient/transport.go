// SPDX-License-Identifier: Apache-2.0

package promclient

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

const (
	// maxHeaderBytes is how large an answer may be without its body.
	maxHeaderBytes = 32 << 10
	// maxConnections is how many there are to one address at a time.
	maxConnections = 4
	connectTimeout = 5 * time.Second
	idleTimeout    = 90 * time.Second
)

// refusal is an error of what was asked, not of the server or the way to it.
type refusal string

// Error returns the text.
func (r refusal) Error() string { return string(r) }

func refusef(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// newTransport returns what speaks to one address. It goes to no proxy, and to no address of this host or of the link, where the
// metadata service of a cloud is: people who may write a resource choose the address, and the operator or the balancer sends the request.
func newTransport(ca string, loopback bool) *http.Transport {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM([]byte(ca)) // It was checked.
	}
	dialer := &net.Dialer{Timeout: connectTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		return MayDial(address, loopback)
	}}
	return &http.Transport{
		Proxy: nil, DialContext: dialer.DialContext, TLSClientConfig: config, TLSHandshakeTimeout: connectTimeout, ForceAttemptHTTP2: true,
		MaxConnsPerHost: maxConnections, MaxIdleConnsPerHost: maxConnections, IdleConnTimeout: idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // A small answer must not become a large one.
	}
}

// MayDial refuses addresses of this host and link, at which nothing is that others may have asked. It is asked after names were resolved.
func MayDial(address string, loopback bool) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return refusef("%q is no address", address)
	}
	switch ip := ap.Addr().Unmap(); {
	case ip.IsUnspecified(), ip.IsMulticast(), ip.IsLinkLocalUnicast(), ip.IsLoopback() && !loopback:
		return refusef("%s is an address of this host or link, which is not asked", ip)
	}
	return nil
}

// session sends the requests of one measurement.
type session struct {
	next http.RoundTripper
	Credentials
	options Options
}

// RoundTrip authenticates a request, and gives an answer a limit. A redirect ends it: the credentials are for one address.
func (s session) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	s.authorize(r)
	r.Header.Set("User-Agent", s.options.UserAgent)
	response, err := s.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		_ = response.Body.Close()
		return nil, refusef("it redirects, which is not followed (HTTP status %d): give the address that it redirects to", response.StatusCode)
	}
	response.Body = &limited{ReadCloser: response.Body, options: s.options, left: s.options.MaxAnswerBytes}
	return response, nil
}

// limited is a body that fails beyond a limit.
type limited struct {
	io.ReadCloser
	options Options
	left    int
}

// Read reads what is left, and one byte to see whether there is more.
func (l *limited) Read(p []byte) (int, error) {
	if len(p) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.ReadCloser.Read(p)
	if n > l.left {
		return 0, refusef("its answer has more than %d bytes: %s", l.options.MaxAnswerBytes, l.options.Hint)
	}
	l.left -= n
	return n, err
}
