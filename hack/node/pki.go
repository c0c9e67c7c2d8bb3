// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"k8s.io/client-go/tools/clientcmd"
)

// validity is that of the certificates. Each node has new ones.
const validity = 30 * 24 * time.Hour

// identity is what a certificate says about its owner.
type identity struct {
	file         string // Without .crt and .key.
	name         string
	organization string   // The group, for clients.
	hosts        []string // Names and addresses, for servers; clients have none.
}

// identities are all certificates of a node but that of its authority.
func identities() []identity {
	return []identity{
		{file: "apiserver", name: "kube-apiserver", hosts: []string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
			"localhost", "127.0.0.1", nodeIP, apiService,
		}},
		{file: "kubelet-server", name: nodeName, hosts: []string{nodeName, nodeIP}},
		{file: "apiserver-kubelet", name: "kube-apiserver-kubelet-client", organization: "system:masters"},
		{file: "admin", name: "admin", organization: "system:masters"},
		{file: "kubelet", name: "system:node:" + nodeName, organization: "system:nodes"},
		{file: "controller-manager", name: "system:kube-controller-manager"},
		{file: "scheduler", name: "system:kube-scheduler"},
		{file: "proxy", name: "system:kube-proxy"},
	}
}

// authority signs the certificates of a node.
type authority struct {
	dir  string
	now  time.Time
	cert *x509.Certificate
	key  crypto.Signer
	ca   []byte // The certificate as PEM.
}

// writePKI creates an authority, all certificates, and the key of the service accounts in dir.
func writePKI(dir string, now time.Time) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	a := &authority{dir: dir, now: now}
	if err := a.create(); err != nil {
		return nil, fmt.Errorf("creating the certificate authority: %w", err)
	}
	for _, id := range identities() {
		if err := a.issue(id); err != nil {
			return nil, fmt.Errorf("issuing the certificate of %s: %w", id.file, err)
		}
	}
	key, err := writeKey(filepath.Join(dir, "service-accounts.key"))
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	return a, writePEM(filepath.Join(dir, "service-accounts.pub"), "PUBLIC KEY", public)
}

// create makes the authority's own certificate.
func (a *authority) create() (err error) {
	if a.key, err = writeKey(filepath.Join(a.dir, "ca.key")); err != nil {
		return err
	}
	template := a.template(pkix.Name{CommonName: nodeName + "-ca"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	a.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return os.WriteFile(filepath.Join(a.dir, "ca.crt"), a.ca, 0o644)
}

// issue writes a key and the certificate for it.
func (a *authority) issue(id identity) error {
	key, err := writeKey(filepath.Join(a.dir, id.file+".key"))
	if err != nil {
		return err
	}
	subject := pkix.Name{CommonName: id.name}
	if id.organization != "" {
		subject.Organization = []string{id.organization}
	}
	template := a.template(subject)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(id.hosts) > 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	for _, host := range id.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	return writePEM(filepath.Join(a.dir, id.file+".crt"), "CERTIFICATE", der)
}

// template has what all certificates have. The clocks of all parties are one, but a second may be rounded away.
func (a *authority) template(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // It cannot fail.
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject,
		NotBefore: a.now.Add(-time.Minute), NotAfter: a.now.Add(validity),
	}
}

// writeKubeconfig writes a kubeconfig for the client whose certificate is in the files that id names.
func (a *authority) writeKubeconfig(path, id string) error {
	cert, err := os.ReadFile(filepath.Join(a.dir, id+".crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Join(a.dir, id+".key"))
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[nodeName] = &clientcmdapi.Cluster{Server: apiURL, CertificateAuthorityData: a.ca}
	config.AuthInfos[id] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts[nodeName] = &clientcmdapi.Context{Cluster: nodeName, AuthInfo: id}
	config.CurrentContext = nodeName
	return clientcmd.WriteToFile(*config, path)
}

// writeKey makes a private key.
func writeKey(path string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(path, "PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
