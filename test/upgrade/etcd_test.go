// SPDX-License-Identifier: Apache-2.0

package upgrade_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// entry is an object as the API server stores it. In JSON both are in base64, as etcd's HTTP interface has them.
type entry struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// stored are the kinds whose objects the earlier build wrote, or worked on.
var stored = []string{"configmaps", "controllerrevisions", "services/specs", "endpointslices", "ringwright.dev/hashrings", "ringwright.dev/ringmigrations"}

// dump returns the objects of the namespace as they are stored, in the order of their keys.
func (c *cluster) dump(ctx context.Context) []entry {
	GinkgoHelper()
	var all []entry
	for _, kind := range stored {
		prefix := []byte("/registry/" + kind + "/" + namespace + "/")
		end := slices.Clone(prefix)
		end[len(end)-1]++
		var answer struct {
			KVs []entry `json:"kvs"`
		}
		c.askEtcd(ctx, "range", map[string][]byte{"key": prefix, "range_end": end}, &answer)
		Expect(answer.KVs).NotTo(BeEmpty(), "%s", prefix)
		all = append(all, answer.KVs...)
	}
	return all
}

// restore stores objects as they were stored once: with their UIDs, the owners of their fields and the bytes of an earlier build.
func (c *cluster) restore(ctx context.Context, all []entry) {
	GinkgoHelper()
	for _, e := range all {
		c.askEtcd(ctx, "put", e, &struct{}{})
	}
}

func (c *cluster) askEtcd(ctx context.Context, what string, question, answer any) {
	GinkgoHelper()
	body, err := json.Marshal(question)
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.etcd, "/")+"/v3/kv/"+what, bytes.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	Expect(response).To(HaveHTTPStatus(http.StatusOK))
	Expect(json.NewDecoder(response.Body).Decode(answer)).To(Succeed())
}
