// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFile pins weights.json byte by byte: readers without xDS parse it.
func TestFile(t *testing.T) {
	h := &holding{policy: key, version: 7, served: Served{"uid-000000": 9000, "uid-000001": 11000, "10.0.0.9:80": 1}, endpoints: newEndpoints(2)}
	h.endpoints = append([]Endpoint{{ID: "10.0.0.9:80", Address: "10.0.0.9", Port: 80}}, h.endpoints...)
	want := strings.Join([]string{
		`{"apiVersion":"ringwright.dev/v1alpha1","policy":"shop/checkout","version":7,"endpoints":[`,
		`{"id":"10.0.0.9:80","address":"10.0.0.9","port":80,"weight":1,"ready":false},`,
		`{"id":"uid-000000","name":"pod-000000","address":"10.0.0.0","port":8080,"zone":"a","weight":9000,"ready":true},`,
		`{"id":"uid-000001","name":"pod-000001","address":"10.0.0.1","port":8080,"zone":"b","weight":11000,"ready":true}]}`, "\n",
	}, "")
	for range 5 {
		got, err := h.file()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Fatal(diff)
		}
	}
	empty, err := (&holding{policy: key}).file()
	if want := `{"apiVersion":"ringwright.dev/v1alpha1","policy":"shop/checkout","version":0,"endpoints":[]}` + "\n"; err != nil || string(empty) != want {
		t.Errorf("%s, %v", empty, err)
	}
}
