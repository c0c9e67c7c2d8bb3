// SPDX-License-Identifier: Apache-2.0

package promclient

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The keys of a Secret.
const (
	keyToken    = "token"
	keyUsername = "username"
	keyPassword = "password"
	keyCA       = "ca.crt"
)

// Credentials are what a Secret says. They live as long as one measurement. The zero value are none.
type Credentials struct{ token, username, password, ca string }

// ReadCredentials reads a Secret from the API server, each time: what was revoked there is not used here. Its errors have nothing
// of what is in it. who is who reads it, as "operator".
func ReadCredentials(ctx context.Context, reader client.Reader, key types.NamespacedName, who string) (Credentials, error) {
	secret := &corev1.Secret{}
	switch err := reader.Get(ctx, key, secret); {
	case apierrors.IsNotFound(err):
		return Credentials{}, fmt.Errorf("there is no Secret %s in namespace %s", key.Name, key.Namespace)
	case apierrors.IsForbidden(err):
		return Credentials{}, fmt.Errorf("the %s may not read Secret %s: it needs a Role in namespace %s with verb get on secrets of that name, and a RoleBinding to its service account",
			who, key.Name, key.Namespace)
	case err != nil:
		return Credentials{}, fmt.Errorf("reading Secret %s: %w", key.Name, err)
	}
	line := func(name string) string { return strings.TrimRight(string(secret.Data[name]), "\r\n") } // Editors and echo end files with a line.
	c := Credentials{token: line(keyToken), username: line(keyUsername), password: line(keyPassword), ca: string(secret.Data[keyCA])}
	if err := c.check(); err != nil {
		return Credentials{}, fmt.Errorf("the Secret %s %w", key.Name, err)
	}
	return c, nil
}

func (c Credentials) check() error {
	switch {
	case c == Credentials{}:
		return errors.New("has none of the keys token, username with password, and ca.crt")
	case c.token != "" && (c.username != "" || c.password != ""):
		return errors.New("has both token and username or password: one of them has to go")
	case (c.username == "") != (c.password == ""):
		return errors.New("has one of username and password without the other")
	case strings.ContainsFunc(c.token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("has a token with characters that a header cannot have")
	case strings.Contains(c.username, ":"):
		return errors.New("has a username with a colon, which basic authentication cannot send")
	}
	if c.ca != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(c.ca)) {
		return errors.New("has no certificate in PEM form in ca.crt")
	}
	return nil
}

// digest tells credentials apart without keeping them.
func (c Credentials) digest() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", c.token, c.username, c.password, c.ca))
}

// authorize adds them to a request.
func (c Credentials) authorize(r *http.Request) {
	switch {
	case c.token != "":
		r.Header.Set("Authorization", "Bearer "+c.token)
	case c.username != "":
		r.SetBasicAuth(c.username, c.password)
	}
}

// Redact takes them out of a text: a server may send back what it was sent.
func (c Credentials) Redact(text string) string {
	basic := base64.StdEncoding.EncodeToString([]byte(c.username + ":" + c.password))
	for _, secret := range []string{c.token, basic, c.password} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return text
}
