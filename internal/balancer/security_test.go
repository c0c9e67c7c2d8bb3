// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, key: key}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert = a.sign(template, template, &key.PublicKey)
	return a
}

func (a *authority) sign(template, parent *x509.Certificate, public *ecdsa.PublicKey) *x509.Certificate {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

// issue writes tls.crt, tls.key and ca.crt for a name that is valid for life.
func (a *authority) issue(dir, name string, serial int64, life time.Duration) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	cert := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{name}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(life),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.cert, &key.PublicKey)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: cert.Raw}, "tls.key": {Type: "PRIVATE KEY", Bytes: der}, "ca.crt": {Type: "CERTIFICATE", Bytes: a.cert.Raw},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
}

func secured(t *testing.T, dir string) *security {
	t.Helper()
	s, err := newSecurity(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// call has one replica call another.
func call(t *testing.T, server, caller *security) error {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(server.server()...)
	healthv1.RegisterHealthServer(s, health.NewServer())
	go func() { _ = s.Serve(listener) }()
	defer s.Stop()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(caller.client()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{})
	return err
}

// TestWhomAReplicaCalls: the address of a replica is in no certificate, its name is.
func TestWhomAReplicaCalls(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	own := t.TempDir()
	ours.issue(own, "ringwright-balancer.system.svc", 1, time.Hour)
	for name, test := range map[string]struct {
		serve func(dir string)
		want  string
	}{
		"a replica":             {func(dir string) { ours.issue(dir, "ringwright-balancer.system.svc", 2, time.Hour) }, ""},
		"of another authority":  {func(dir string) { others.issue(dir, "ringwright-balancer.system.svc", 2, time.Hour) }, "signed by unknown authority"},
		"one that is over":      {func(dir string) { ours.issue(dir, "ringwright-balancer.system.svc", 2, -time.Minute) }, "expired"},
		"somebody with another": {func(dir string) { ours.issue(dir, "shop.shop.svc", 2, time.Hour) }, "the certificate is for"},
		"plain":                 {nil, "first record does not look like a TLS handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &security{}
			if test.serve != nil {
				dir := t.TempDir()
				test.serve(dir)
				server = secured(t, dir)
			}
			err := call(t, server, secured(t, own))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	if err := call(t, &security{}, &security{}); err != nil {
		t.Errorf("both plain: %v", err)
	}
}

// TestCertificatesAreReplacedInPlace, and the last good ones stay while files are missing.
func TestCertificatesAreReplacedInPlace(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	a.issue(dir, "balancer", 1, time.Hour)
	s := secured(t, dir)
	serial := func() int64 {
		t.Helper()
		certificate, err := s.tls().GetCertificate(&tls.ClientHelloInfo{})
		if err != nil {
			t.Fatal(err)
		}
		return certificate.Leaf.SerialNumber.Int64()
	}
	older := func() { s.at = s.at.Add(-certificateLife) }
	a.issue(dir, "balancer", 2, time.Hour)
	if got := serial(); got != 1 {
		t.Errorf("the files are read at each handshake: %d", got)
	}
	older()
	if got := serial(); got != 2 {
		t.Errorf("certificate %d is used, want the new one", got)
	}
	for _, file := range []string{"tls.key", "ca.crt"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte("half written"), 0o600); err != nil {
			t.Fatal(err)
		}
		older()
		if got := serial(); got != 2 {
			t.Errorf("certificate %d is used while %s is broken", got, file)
		}
		if _, err := newSecurity(dir); err == nil || !strings.HasPrefix(err.Error(), "--cert-dir: ") {
			t.Errorf("a start with a broken %s: %v", file, err)
		}
	}
	if _, err := newSecurity(t.TempDir()); err == nil {
		t.Error("a start without files is no error")
	}
}
