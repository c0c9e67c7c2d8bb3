// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// Ways to know the name that the certificate of a backend must have. Another is fixedName and a name.
const (
	// ServerNameAddress is the host of the backend's address.
	ServerNameAddress = "address"
	// ServerNameIdentity is the backend's identity, without the port where it has one.
	ServerNameIdentity = "identity"
	fixedName          = "name:"
)

// TLSConfig says how connections to backends are encrypted.
type TLSConfig struct {
	// Enabled uses TLS. The other fields can be set only with it.
	Enabled bool
	// CAFile has the certificates that those of backends are signed by; the system's are taken where it is "".
	CAFile string
	// CertFile and KeyFile are the certificate that the proxy shows, where they are set.
	CertFile, KeyFile string
	// ServerName is ServerNameAddress, ServerNameIdentity, or "name:" and a name.
	ServerName string
}

func (c *TLSConfig) check() error {
	name, fixed := strings.CutPrefix(c.ServerName, fixedName)
	switch {
	case !c.Enabled && (c.CAFile != "" || c.CertFile != "" || c.KeyFile != ""):
		return errors.New("--proxy-backend-ca, --proxy-backend-cert and --proxy-backend-key need --proxy-backend-tls")
	case (c.CertFile == "") != (c.KeyFile == ""):
		return errors.New("--proxy-backend-cert and --proxy-backend-key need each other")
	case fixed && name != "", c.ServerName == ServerNameAddress, c.ServerName == ServerNameIdentity:
		return nil
	default:
		return fmt.Errorf("--proxy-backend-server-name is %q, not address, identity or name:NAME", c.ServerName)
	}
}

// serverName returns the name that the certificate of a backend must have.
func (c *TLSConfig) serverName(id, address string) string {
	if name, fixed := strings.CutPrefix(c.ServerName, fixedName); fixed {
		return name
	}
	from := address
	if c.ServerName == ServerNameIdentity {
		from = id
	}
	if host, _, err := net.SplitHostPort(from); err == nil {
		return host
	}
	return strings.Trim(from, "[]")
}

// credentials are the files of a TLSConfig. They are looked at before every handshake and read where they have changed; what
// cannot be read leaves the ones before in place.
type credentials struct {
	config TLSConfig

	mu sync.Mutex
	// seen is what the files were like when they were read last.
	seen        []fileState
	roots       *x509.CertPool
	certificate *tls.Certificate
}

// fileState is by what a change of a file is noticed.
type fileState struct {
	info os.FileInfo
	size int64
	at   time.Time
}

// newCredentials reads the files for the first time.
func newCredentials(config TLSConfig) (*credentials, error) {
	c := &credentials{config: config}
	c.seen = c.look()
	return c, c.read()
}

// handshake returns the configuration of one handshake, and once for each change why newer files could not be used.
func (c *credentials) handshake(serverName string, protocols []string) (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if now := c.look(); !same(now, c.seen) {
		// Whatever comes of it: files that are wrong are read again when they change again.
		err, c.seen = c.read(), now
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName, RootCAs: c.roots, NextProtos: protocols}
	if c.certificate != nil {
		config.Certificates = []tls.Certificate{*c.certificate}
	}
	return config, err
}

// look returns what the files are like. One that is not there has no info.
func (c *credentials) look() []fileState {
	var states []fileState
	for _, name := range []string{c.config.CAFile, c.config.CertFile, c.config.KeyFile} {
		state := fileState{}
		if info, err := os.Stat(name); name != "" && err == nil {
			state = fileState{info, info.Size(), info.ModTime()}
		}
		states = append(states, state)
	}
	return states
}

func same(a, b []fileState) bool {
	for i := range a {
		switch {
		case a[i].info == nil || b[i].info == nil:
			if a[i].info != b[i].info {
				return false
			}
		case a[i].size != b[i].size, !a[i].at.Equal(b[i].at), !os.SameFile(a[i].info, b[i].info):
			return false
		}
	}
	return true
}

// read takes all files or none.
func (c *credentials) read() error {
	var roots *x509.CertPool
	if c.config.CAFile != "" {
		text, err := os.ReadFile(c.config.CAFile)
		if err != nil {
			return fmt.Errorf("--proxy-backend-ca: %w", err)
		}
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(bytes.TrimSpace(text)) {
			return fmt.Errorf("--proxy-backend-ca: %s holds no certificate in PEM", c.config.CAFile)
		}
	}
	var certificate *tls.Certificate
	if c.config.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.config.CertFile, c.config.KeyFile)
		if err != nil {
			return fmt.Errorf("--proxy-backend-cert and --proxy-backend-key: %w", err)
		}
		certificate = &pair
	}
	c.roots, c.certificate = roots, certificate
	return nil
}
