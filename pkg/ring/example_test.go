// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/ringwright/ringwright/pkg/ring"
)

// fourCaches is the ring of the examples: three caches in Europe, one elsewhere, which has twice the room.
func fourCaches() *ring.Ring {
	r, err := ring.Build(ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 160},
		Identity:  ring.IdentityAddress,
		Backends: []ring.Backend{
			{ID: "10.0.0.1:8080", Weight: 1, Features: []string{"eu"}},
			{ID: "10.0.0.2:8080", Weight: 1, Features: []string{"eu"}},
			{ID: "10.0.0.3:8080", Weight: 1, Features: []string{"eu"}},
			{ID: "10.0.0.4:8080", Weight: 2},
		},
		Features: []string{"eu"},
	})
	if err != nil {
		log.Fatal(err)
	}
	return r
}

// A ring is built once, its snapshot is published, and readers look keys up in the bytes.
func Example() {
	snapshot := fourCaches().Snapshot()

	r, err := ring.Open(snapshot)
	if err != nil {
		log.Fatal(err)
	}
	for _, key := range []string{"/logo.png", "/index.html", "/style.css"} {
		owner, err := r.Owner(ring.Hash([]byte(key)))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(key, r.ID(owner))
	}
	// Output:
	// /logo.png 10.0.0.2:8080
	// /index.html 10.0.0.1:8080
	// /style.css 10.0.0.4:8080
}

// A view answers as a ring of its members alone would.
func ExampleRing_View() {
	r := fourCaches()
	eu, err := r.View("eu")
	if err != nil {
		log.Fatal(err)
	}
	hash := ring.Hash([]byte("/style.css"))
	anywhere, _ := r.Owner(hash)
	inEurope, _ := eu.Owner(hash)
	fmt.Println(r.ID(anywhere), r.ID(inEurope))
	// Output:
	// 10.0.0.4:8080 10.0.0.2:8080
}

// The owner, and the one that takes over while the owner is down. A backend that is down keeps its place in the ring.
func ExampleView_AppendOwners() {
	r := fourCaches()
	all, err := r.View()
	if err != nil {
		log.Fatal(err)
	}
	hash := ring.Hash([]byte("/logo.png"))
	owners := all.AppendOwners(nil, hash, 2, nil)
	fmt.Println(r.ID(owners[0]), r.ID(owners[1]))

	down := func(backend int) bool { return backend == owners[0] }
	fmt.Println(r.ID(all.AppendOwners(nil, hash, 1, down)[0]))
	// Output:
	// 10.0.0.2:8080 10.0.0.4:8080
	// 10.0.0.4:8080
}

// Shares are exact: arc lengths, not samples.
func ExampleRing_Shares() {
	r := fourCaches()
	for i, share := range r.Shares() {
		fmt.Printf("%s %.2f %%\n", r.ID(i), float64(share)/ring.KeySpace*100)
	}
	// Output:
	// 10.0.0.1:8080 20.08 %
	// 10.0.0.2:8080 19.56 %
	// 10.0.0.3:8080 22.34 %
	// 10.0.0.4:8080 38.02 %
}

// Open refuses whatever Build would not have written, and says what is wrong.
func ExampleOpen() {
	snapshot := fourCaches().Snapshot()
	_, err := ring.Open(snapshot[:len(snapshot)-1])
	fmt.Println(err)

	_, err = ring.Open(ring.EmptySlot())
	fmt.Println(errors.Is(err, ring.ErrEmptySlot))
	// Output:
	// snapshot: length at byte 40: the header says 3080 bytes, the file has 3079
	// true
}
