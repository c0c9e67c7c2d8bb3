// SPDX-License-Identifier: Apache-2.0

package gate

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
	// MaxAnswerBytes is how large the body of an answer may be: a gate needs one number.
	MaxAnswerBytes = 256 << 10
	// maxHeaderBytes is how large the rest may be.
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

var errTooLarge = refusef("its answer has more than %d bytes: aggregate, a gate needs one number", MaxAnswerBytes)

// newTransport returns what speaks to one address. It goes to no proxy, and to no address of this host or of the link, where the
// metadata service of a cloud is: people who may write a RingMigration choose the address, and the operator sends the request.
func newTransport(ca string, loopback bool) *http.Transport {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM([]byte(ca)) // It was checked.
	}
	dialer := &net.Dialer{Timeout: connectTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		return mayDial(address, loopback)
	}}
	return &http.Transport{
		Proxy: nil, DialContext: dialer.DialContext, TLSClientConfig: config, TLSHandshakeTimeout: connectTimeout, ForceAttemptHTTP2: true,
		MaxConnsPerHost: maxConnections, MaxIdleConnsPerHost: maxConnections, IdleConnTimeout: idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // A small answer must not become a large one.
	}
}

// mayDial refuses addresses at which no Prometheus is. It is asked after names were resolved.
func mayDial(address string, loopback bool) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return refusef("%q is no address", address)
	}
	switch ip := ap.Addr().Unmap(); {
	case ip.IsUnspecified(), ip.IsMulticast(), ip.IsLinkLocalUnicast(), ip.IsLoopback() && !loopback:
		return refusef("%s is an address of this host or link, which gates cannot ask", ip)
	}
	return nil
}

// session sends the requests of one measurement.
type session struct {
	next http.RoundTripper
	credentials
}

// RoundTrip authenticates a request, and gives an answer a limit. A redirect ends it: the credentials are for one address.
func (s session) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	s.authorize(r)
	r.Header.Set("User-Agent", "ringwright-operator")
	response, err := s.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		_ = response.Body.Close()
		return nil, refusef("it redirects, which is not followed (HTTP status %d): give the address that it redirects to", response.StatusCode)
	}
	response.Body = &limited{ReadCloser: response.Body, left: MaxAnswerBytes}
	return response, nil
}

// limited is a body that fails beyond a limit.
type limited struct {
	io.ReadCloser
	left int
}

// Read reads what is left, and one byte to see whether there is more.
func (l *limited) Read(p []byte) (int, error) {
	if len(p) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.ReadCloser.Read(p)
	if n > l.left {
		return 0, errTooLarge
	}
	l.left -= n
	return n, err
}
