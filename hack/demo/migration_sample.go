// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
)

// keySets says of each datacenter which keys of the sample are on the candidate, and who has each key.
type keySets struct {
	candidate map[string]map[string]bool
	owners    map[string]map[string]string
}

// sample asks every agent for all keys of the sample. Those of a datacenter have to agree.
func (m *migrationDemo) sample(ctx context.Context) (keySets, error) {
	sets := keySets{candidate: map[string]map[string]bool{}, owners: map[string]map[string]string{}}
	for _, a := range m.agents {
		candidate, owners, err := a.lookup(ctx)
		if err != nil {
			return sets, err
		}
		if known := sets.owners[a.datacenter]; known != nil && (!maps.Equal(known, owners) || !maps.Equal(candidate, sets.candidate[a.datacenter])) {
			return sets, fmt.Errorf("%s has other answers than the agent before it in %s", a.name, a.datacenter)
		}
		sets.candidate[a.datacenter], sets.owners[a.datacenter] = candidate, owners
	}
	return sets, nil
}

// lookup asks an agent for all keys of the sample, in batches.
func (a *ringAgent) lookup(ctx context.Context) (candidate map[string]bool, owners map[string]string, err error) {
	candidate, owners = map[string]bool{}, map[string]string{}
	var keys []string
	for i := range sampledKeys {
		keys = append(keys, sampleKey(i))
	}
	for batch := range slices.Chunk(keys, 1000) {
		if err := a.lookupBatch(ctx, batch, candidate, owners); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return candidate, owners, nil
}

func (a *ringAgent) lookupBatch(ctx context.Context, keys []string, candidate map[string]bool, owners map[string]string) error {
	body, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/v1/lookup", bytes.NewReader(body))
	if err != nil {
		return err
	}
	var said struct {
		Answers []struct {
			Ring   int   `json:"ring"`
			Owners []int `json:"owners"`
		} `json:"answers"`
		Rings []struct {
			Role string `json:"role"`
		} `json:"rings"`
		Backends []struct {
			ID string `json:"id"`
		} `json:"backends"`
	}
	if err := do(request, func(r *http.Response) error { return json.NewDecoder(r.Body).Decode(&said) }); err != nil {
		return err
	}
	if len(said.Answers) != len(keys) {
		return fmt.Errorf("%d of %d keys are answered", len(said.Answers), len(keys))
	}
	for i, key := range keys {
		owners[key] = said.Backends[said.Answers[i].Owners[0]].ID
		if said.Rings[said.Answers[i].Ring].Role == roleCandidate {
			candidate[key] = true
		}
	}
	return nil
}

// missing returns how many of the keys of a set are not in another.
func missing(from, in map[string]bool) int {
	count := 0
	for key := range from {
		if !in[key] {
			count++
		}
	}
	return count
}

// served returns how many of a set of keys are asked for.
func served(keys map[string]bool) int {
	count := 0
	for i := range servedKeys {
		if keys[sampleKey(i)] {
			count++
		}
	}
	return count
}

// movedOwners returns the keys whose owners differ.
func movedOwners(before, after map[string]string) map[string]bool {
	keys := map[string]bool{}
	for _, key := range moved(before, after) {
		keys[key] = true
	}
	return keys
}

// deviations is how many standard deviations a count may be from what was announced: more is seen once in 1.7 million.
const deviations = 5

// bounds are those of a count of n keys of which each is taken by the probability p.
func bounds(n int, p float64) (low, high int) {
	middle, width := float64(n)*p, deviations*math.Sqrt(float64(n)*p*(1-p))
	return int(math.Ceil(max(middle-width, 0))), int(math.Floor(min(middle+width, float64(n))))
}
