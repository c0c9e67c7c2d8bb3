// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/proxy"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue returns a certificate for names and addresses, and its key, in PEM.
func (a *authority) issue(names ...string) (cert, key []byte) {
	a.t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	own := newKey(a.t)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, own.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(own)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// secure serves TLS and answers with the protocol and the name on the client's certificate.
func (a *authority) secure(change func(*tls.Config), names ...string) string {
	a.t.Helper()
	pair, err := tls.X509KeyPair(a.issue(names...))
	if err != nil {
		a.t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			client = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_, _ = fmt.Fprintf(w, "%s %s", r.Proto, client)
	}))
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven}
	s.EnableHTTP2 = true
	s.Config.ErrorLog = quiet
	if change != nil {
		change(s.TLS)
	}
	s.StartTLS()
	a.t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.Listener.Addr().String()
}

func write(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	full := filepath.Join(dir, name)
	if err := os.WriteFile(full+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(full+".new", full); err != nil {
		t.Fatal(err)
	}
	return full
}

func TestTLS(t *testing.T) {
	a := newAuthority(t)
	dir := t.TempDir()
	ca := write(t, dir, "ca.pem", a.pem)
	cert, key := a.issue("proxy")
	certFile, keyFile := write(t, dir, "tls.crt", cert), write(t, dir, "tls.key", key)
	rows := map[string]struct {
		address string
		change  func(*proxy.Config)
		want    string
	}{
		"by address":                {a.secure(nil, "127.0.0.1"), func(*proxy.Config) {}, "HTTP/1.1 nobody"},
		"address is not on it":      {a.secure(nil, "a"), func(*proxy.Config) {}, ": tls"},
		"by identity":               {a.secure(nil, "a"), func(c *proxy.Config) { c.TLS.ServerName = "identity" }, "HTTP/1.1 nobody"},
		"identity is not on it":     {a.secure(nil, "b"), func(c *proxy.Config) { c.TLS.ServerName = "identity" }, ": tls"},
		"by a fixed name":           {a.secure(nil, "cache"), func(c *proxy.Config) { c.TLS.ServerName = "name:cache" }, "HTTP/1.1 nobody"},
		"another authority":         {newAuthority(t).secure(nil, "127.0.0.1"), func(*proxy.Config) {}, ": tls"},
		"the authorities of system": {a.secure(nil, "127.0.0.1"), func(c *proxy.Config) { c.TLS.CAFile = "" }, ": tls"},
		"with a certificate": {
			a.secure(func(c *tls.Config) { c.ClientAuth = tls.RequireAndVerifyClientCert }, "127.0.0.1"),
			func(c *proxy.Config) { c.TLS.CertFile, c.TLS.KeyFile = certFile, keyFile }, "HTTP/1.1 proxy",
		},
		"HTTP/2":  {a.secure(nil, "127.0.0.1"), func(c *proxy.Config) { c.HTTP2 = true }, "HTTP/2.0 nobody"},
		"TLS 1.1": {a.secure(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11; c.MinVersion = tls.VersionTLS10 }, "127.0.0.1"), func(*proxy.Config) {}, ": tls"},
		"no TLS":  {backend(t, dump), func(*proxy.Config) {}, ": tls"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			c := config()
			c.TLS.Enabled, c.TLS.CAFile = true, ca
			row.change(&c)
			f := newFleet(t, c, map[string]string{"a": row.address}, "a")
			if got := f.get("/"); !strings.Contains(got.body, row.want) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// strict refuses every connection without a certificate, and waits until the client has closed it: a reset could overtake the alert.
func (a *authority) strict() string {
	a.t.Helper()
	pair, err := tls.X509KeyPair(a.issue("127.0.0.1"))
	if err != nil {
		a.t.Fatal(err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert, NextProtos: []string{"h2", "http/1.1"}}
	return raw(a.t, func(_ int, conn net.Conn, _ *bufio.Reader) {
		if err := tls.Server(conn, c).Handshake(); err != nil {
			_, _ = io.Copy(io.Discard, conn)
		}
	})
}

// TestTLSAlert: with TLS 1.3 a backend refuses a certificate when the handshake is over for the proxy. It says why, which is what
// the client and the log get, and nobody else is tried or passed over.
func TestTLSAlert(t *testing.T) {
	a := newAuthority(t)
	for _, http2 := range []bool{false, true} {
		var log bytes.Buffer
		c := config()
		c.TLS.Enabled, c.TLS.CAFile, c.HTTP2 = true, write(t, t.TempDir(), "ca.pem", a.pem), http2
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		f := newFleet(t, c, map[string]string{"a": a.strict(), "b": a.strict()}, "a", "b")
		path := f.key("a")
		for range 3 {
			got := f.get(path)
			if p := got.problem(t); got.status != 502 || !strings.Contains(p.Error, "tls: certificate required") || p.Value != "a" {
				t.Errorf("HTTP/2 %v: %d %+v", http2, got.status, p)
			}
		}
		if tried, failed := f.value("attempts_total"), f.value("errors_total", "reason", "tls"); tried != 3 || failed != 3 || f.value("passed_over_total") != 0 {
			t.Errorf("HTTP/2 %v: %v attempts, %v errors, or it is passed over", http2, tried, failed)
		}
		if n := strings.Count(log.String(), "certificate required"); n != 1 {
			t.Errorf("HTTP/2 %v: logged %d times:\n%s", http2, n, log.String())
		}
	}
}

// TestTLSFilesChange: the next connection is made with what is there then, and files that are wrong leave the ones before.
func TestTLSFilesChange(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	ca := write(t, dir, "ca.pem", other.pem)
	c := config()
	c.TLS.Enabled, c.TLS.CAFile, c.IdleConnections = true, ca, 0
	c.PassOver, c.MaxPassOver = time.Millisecond, time.Millisecond
	f := newFleet(t, c, map[string]string{"a": a.secure(nil, "127.0.0.1")}, "a")
	if got := f.get("/"); got.status != 502 {
		t.Fatalf("%+v", got)
	}
	write(t, dir, "ca.pem", a.pem)
	if got := f.get("/"); got.status != 200 {
		t.Errorf("%+v", got)
	}
	write(t, dir, "ca.pem", []byte("this is no certificate"))
	for range 2 {
		if got := f.get("/"); got.status != 200 {
			t.Errorf("%+v", got)
		}
	}
	if err := os.Remove(ca); err != nil {
		t.Fatal(err)
	}
	if got := f.get("/"); got.status != 200 {
		t.Errorf("%+v", got)
	}
}

// TestHTTP2WithoutTLS: from the client to the backend.
func TestHTTP2WithoutTLS(t *testing.T) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = fmt.Fprint(w, r.Proto)
		w.Header().Set("Grpc-Status", "0")
	}))
	s.Config.Protocols = protocols
	s.Start()
	t.Cleanup(s.Close)
	c := config()
	c.HTTP2 = true
	f := newFleet(t, c, map[string]string{"a": s.Listener.Addr().String()}, "a")
	f.http.Transport.(*http.Transport).Protocols = protocols
	got := f.get("/")
	if got.body != "HTTP/2.0" || got.trailer.Get("Grpc-Status") != "0" {
		t.Errorf("%+v", got)
	}
}
