// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// sameUser returns the user of a token file as the one that replicas are, nobody where there is no such file. The token is this replica's
// own: what it says is believed, and those of others are reviewed by the API server.
func sameUser(tokenFile string) ([]string, error) {
	token, err := os.ReadFile(tokenFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // A single replica calls nobody.
	}
	if err != nil {
		return nil, fmt.Errorf("--token-file: %w", err)
	}
	parts := strings.Split(strings.TrimSpace(string(token)), ".")
	if len(parts) != 3 {
		return nil, fmt.Errorf("--token-file: %s has no token of a service account", tokenFile)
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	if err != nil || claims.Subject == "" {
		return nil, fmt.Errorf("--token-file: %s has no token of a service account: %w", tokenFile, errors.Join(err, errNoSubject))
	}
	return []string{claims.Subject}, nil
}

var errNoSubject = errors.New("it names no subject")
