// SPDX-License-Identifier: Apache-2.0

package weights_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unseen are rights that no spec here uses: an event is patched when it comes again within minutes, metrics.k8s.io is not served, so that pods are not asked for their limits, and metrics are served
// without asking who reads them.
var unseen = map[string]bool{"patch events.k8s.io/events": true, "list /pods": true, "create authorization.k8s.io/subjectaccessreviews": true}

// The roles are compared with the audit log at the end: by then balancers have done all that they ever do.
var _ = AfterSuite(func(ctx SpecContext) {
	if suite, _ := GinkgoConfiguration(); len(suite.FocusStrings) > 0 || admin == nil {
		return // A part of the tests needs a part of the roles.
	}
	granted := map[string]bool{}
	for _, name := range []string{"ringwright-balancer-role", "ringwright-metrics-auth-role"} {
		role := &rbacv1.ClusterRole{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: name}, role)).To(Succeed())
		addRules(granted, role.Rules)
	}
	leases := &rbacv1.Role{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: "ringwright-balancer-leases-role"}, leases)).To(Succeed())
	addRules(granted, leases.Rules)
	used := requestsOfBalancers()
	for request := range used {
		Expect(granted).To(HaveKey(request), "balancers need what no role grants")
	}
	var unused []string
	for rule := range granted {
		// A client that can stream a list by a watch falls back to list where the API server cannot.
		streamed := strings.HasPrefix(rule, "list ") && used["watch"+strings.TrimPrefix(rule, "list")]
		if !used[rule] && !unseen[rule] && !streamed {
			unused = append(unused, rule)
		}
	}
	Expect(unused).To(BeEmpty(), "roles grant what balancers do not need")
})

func addRules(granted map[string]bool, rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					granted[fmt.Sprintf("%s %s/%s", verb, group, resource)] = true
				}
			}
		}
	}
}

// requestsOfBalancers reads the audit log: every verb and resource that balancers asked for. A request that was forbidden fails the test.
func requestsOfBalancers() map[string]bool {
	GinkgoHelper()
	file, err := os.Open(auditLog)
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	used := map[string]bool{}
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var event auditv1.Event
		Expect(json.Unmarshal(scanner.Bytes(), &event)).To(Succeed())
		if event.ObjectRef == nil {
			continue
		}
		resource := event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			resource += "/" + event.ObjectRef.Subresource
		}
		request := fmt.Sprintf("%s %s/%s", event.Verb, event.ObjectRef.APIGroup, resource)
		Expect(event.Annotations).NotTo(HaveKeyWithValue("authorization.k8s.io/decision", "forbid"), request)
		used[request] = true
	}
	Expect(scanner.Err()).NotTo(HaveOccurred())
	Expect(used).NotTo(BeEmpty())
	return used
}
