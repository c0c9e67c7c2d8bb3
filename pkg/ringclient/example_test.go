// SPDX-License-Identifier: Apache-2.0

package ringclient_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// A program that runs beside a mounted ring opens it once and asks it for every key.
func Example() {
	dir, err := exampleRing()
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	client, err := ringclient.Open(dir, ringclient.Options{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Close() }()
	decisions, err := client.Lookup([]byte("/images/logo.png"), nil, 2)
	if err != nil {
		panic(err)
	}
	for _, d := range decisions {
		fmt.Println(d.ID(), d.Address())
	}
	// Output:
	// cache-1 10.0.0.2:8080
	// cache-0 10.0.0.1:8080
}

// exampleRing writes the files that the operator would have published.
func exampleRing() (string, error) {
	config := ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 160}, Identity: ring.IdentityName}
	addresses := map[string]string{}
	for i := range 3 {
		name := fmt.Sprintf("cache-%d", i)
		config.Backends = append(config.Backends, ring.Backend{ID: name, Weight: 1})
		addresses[name] = fmt.Sprintf("10.0.0.%d:8080", i+1)
	}
	r, err := ring.Build(config)
	if err != nil {
		return "", err
	}
	file, err := routing.File{
		APIVersion: routing.APIVersion, Ring: "cdn/edge", Generation: 1, Addresses: addresses,
		Stable: routing.Reference{Slot: routing.SlotA, Digest: r.Digest(), Version: "V2"},
	}.Encode()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "ring")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, routing.SlotA.FileName()), r.Snapshot(), 0o600); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, routing.FileName), file, 0o600)
}
