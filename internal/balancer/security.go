// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// certificateLife is for how long a certificate that was read is used before its files are read again: they are replaced in place.
const certificateLife = 10 * time.Second

// security is how connections are protected: by TLS where there is a directory of certificates.
type security struct {
	dir string

	mu     sync.Mutex
	loaded *tls.Certificate
	roots  *x509.CertPool
	at     time.Time
}

func newSecurity(dir string) (*security, error) {
	s := &security{dir: dir}
	if dir == "" {
		return s, nil
	}
	if _, _, err := s.load(); err != nil {
		return nil, fmt.Errorf("--cert-dir: %w", err)
	}
	return s, nil
}

// load returns the certificate and the roots as the files have them. Where they cannot be read later on, the last ones stay.
func (s *security) load() (*tls.Certificate, *x509.CertPool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded != nil && time.Since(s.at) < certificateLife {
		return s.loaded, s.roots, nil
	}
	certificate, certErr := tls.LoadX509KeyPair(filepath.Join(s.dir, "tls.crt"), filepath.Join(s.dir, "tls.key"))
	text, rootErr := os.ReadFile(filepath.Join(s.dir, "ca.crt"))
	roots := x509.NewCertPool()
	if rootErr == nil && !roots.AppendCertsFromPEM(text) {
		rootErr = fmt.Errorf("%s has no certificate", filepath.Join(s.dir, "ca.crt"))
	}
	if err := errors.Join(certErr, rootErr); err != nil {
		if s.loaded != nil {
			return s.loaded, s.roots, nil
		}
		return nil, nil, err
	}
	s.loaded, s.roots, s.at = &certificate, roots, time.Now()
	return s.loaded, s.roots, nil
}

// tls is the configuration of servers, nil where there is none.
func (s *security) tls() *tls.Config {
	if s.dir == "" {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		certificate, _, err := s.load()
		return certificate, err
	}}
}

func (s *security) server() []grpc.ServerOption {
	if config := s.tls(); config != nil {
		return []grpc.ServerOption{grpc.Creds(credentials.NewTLS(config))}
	}
	return nil
}

// client is how this replica calls the others: replicas have the name of the certificate, not that of their address.
func (s *security) client() credentials.TransportCredentials {
	if s.dir == "" {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12,
		// The chain is verified by VerifyConnection: the address of a replica is its pod's, which is in no certificate.
		InsecureSkipVerify: true, //nolint:gosec // See VerifyConnection.
		VerifyConnection: func(state tls.ConnectionState) error {
			own, roots, err := s.load()
			if err != nil {
				return err
			}
			options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
			for _, c := range state.PeerCertificates[1:] {
				options.Intermediates.AddCert(c)
			}
			if _, err = state.PeerCertificates[0].Verify(options); err != nil {
				return err
			}
			return sameNames(own.Leaf, state.PeerCertificates[0])
		},
	})
}

// sameNames says whether a certificate is that of a replica: the CA may have signed those of others, to whom this replica's token must not go.
func sameNames(own, peer *x509.Certificate) error {
	if own == nil || len(own.DNSNames) == 0 {
		return nil
	}
	for _, name := range peer.DNSNames {
		if slices.Contains(own.DNSNames, name) {
			return nil
		}
	}
	return fmt.Errorf("the certificate is for %q, that of this replica is for %q", peer.DNSNames, own.DNSNames)
}
