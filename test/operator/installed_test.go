// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

var _ = Describe("the installed operator", func() {
	It("is ready, and alive", func() {
		for _, probe := range []string{"healthz", "readyz"} {
			Eventually(func() (int, error) { return status("http://"+operator.probes+"/"+probe, "") }).Should(Equal(http.StatusOK))
		}
	})

	It("shows metrics to those who may read them", func(ctx SpecContext) {
		url := "https://" + operator.metrics + "/metrics"
		Eventually(func() (int, error) { return status(url, "") }).Should(Equal(http.StatusUnauthorized))
		namespace := newNamespace(ctx)
		Expect(status(url, token(ctx, namespace, "stranger"))).To(Equal(http.StatusForbidden))
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ringwright-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "prometheus"}},
		}
		Expect(admin.Create(ctx, binding)).To(Succeed())
		Eventually(func() (int, error) { return status(url, token(ctx, namespace, "prometheus")) }).Should(Equal(http.StatusOK))
	})

	It("holds its Lease under a readable name and gives it up when it stops", func(ctx SpecContext) {
		key := client.ObjectKey{Namespace: systemNamespace, Name: "ringwright-manager"}
		lease := &coordinationv1.Lease{}
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, key, lease)).To(Succeed())
			g.Expect(lease.Spec.HolderIdentity).NotTo(BeNil())
			g.Expect(*lease.Spec.HolderIdentity).NotTo(BeEmpty())
		}).Should(Succeed())
		host, err := os.Hostname()
		Expect(err).NotTo(HaveOccurred())
		Expect(*lease.Spec.HolderIdentity).To(HavePrefix(host + "_"))
		operator.stop()
		Expect(admin.Get(ctx, key, lease)).To(Succeed())
		Expect(*lease.Spec.HolderIdentity).To(BeEmpty(), "a successor would have to wait until the lease runs out")
		operator = startOperator()
	})

	It("goes on after a restart without writing anything", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "restarted", 7)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		operator.stop()
		before := writesOfOperator(r.Namespace)
		operator = startOperator()
		probe := newRing(r.Namespace, "probe", 2) // Published only after all that was there has been looked at once.
		Expect(admin.Create(ctx, probe)).To(Succeed())
		settled(ctx, probe, v1alpha1.ReasonRingPublished)
		Expect(writesOfOperator(r.Namespace)["restarted"]).To(Equal(before["restarted"]))
		Expect(before["restarted"]).To(BeNumerically(">=", 8), "the count would miss a write") // The record, 3 claims, 3 applies, the status.
	})

	It("does not even see the objects of others", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "seen", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		watched := map[string]bool{}
		for _, event := range auditEvents() {
			if ref := event.ObjectRef; ref.Resource == "configmaps" || ref.Resource == "controllerrevisions" {
				if event.Verb == "list" || event.Verb == "watch" {
					Expect(event.RequestURI).To(ContainSubstring("labelSelector=app.kubernetes.io%2Fmanaged-by%3Dringwright"))
					watched[ref.Resource] = true
				}
			}
		}
		Expect(watched).To(HaveLen(2))
	})

	It("is shown by kubectl get with the columns that matter", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "shown", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		table := tableOf(ctx, r.Namespace)
		var columns []string
		for _, column := range table.ColumnDefinitions {
			if column.Priority == 0 {
				columns = append(columns, column.Name)
			}
		}
		Expect(columns).To(Equal([]string{"Name", "Algorithm", "Placed", "Total", "Points", "Max/Avg", "Revision", "Ready", "Reason", "Age"}))
		Expect(table.Rows[0].Cells[:8]).To(HaveExactElements("shown", "V2", BeEquivalentTo(3), BeEquivalentTo(3), BeEquivalentTo(480), Not(BeEmpty()), BeEquivalentTo(1), "True"))
	})
})

// The roles are compared with the audit log at the end: by then the operator has done all that it ever does.
var _ = AfterSuite(func(ctx SpecContext) {
	if suite, _ := GinkgoConfiguration(); len(suite.FocusStrings) > 0 || admin == nil {
		return // A part of the tests needs a part of the roles.
	}
	used := requestsOfOperator()
	granted := map[string]bool{}
	for _, name := range []string{"ringwright-manager-role", "ringwright-metrics-auth-role", "ringwright-touch-pods-role"} {
		role := &rbacv1.ClusterRole{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: name}, role)).To(Succeed())
		addRules(granted, role.Rules)
	}
	role := &rbacv1.Role{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: "ringwright-leader-election-role"}, role)).To(Succeed())
	addRules(granted, role.Rules)
	everybody := &rbacv1.ClusterRole{} // What all who log in may do: the operator asks what it may itself.
	Expect(admin.Get(ctx, client.ObjectKey{Name: "system:basic-user"}, everybody)).To(Succeed())
	anyway := map[string]bool{}
	addRules(anyway, everybody.Rules)
	for request := range used {
		Expect(granted).To(Or(HaveKey(request), WithTransform(func(map[string]bool) bool { return anyway[request] }, BeTrue())), "the operator needs what no role grants")
	}
	for rule := range granted {
		// A client that can stream a list by a watch falls back to list where the API server cannot.
		if streamed := "watch" + strings.TrimPrefix(rule, "list"); strings.HasPrefix(rule, "list ") && used[streamed] {
			continue
		}
		Expect(used).To(HaveKey(rule), "a role grants what the operator does not need")
	}
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

// readByGates is what gates of the specs read.
var readByGates = []string{"get /secrets", "get apps/deployments"}

// requestsOfOperator reads the audit log: every verb and resource that the operator's service account asked for. A request
// that was forbidden fails the test.
func requestsOfOperator() map[string]bool {
	GinkgoHelper()
	used := map[string]bool{}
	for _, event := range auditEvents() {
		resource := event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			resource += "/" + event.ObjectRef.Subresource
		}
		request := fmt.Sprintf("%s %s/%s", event.Verb, event.ObjectRef.APIGroup, resource)
		if slices.Contains(readByGates, request) {
			continue // That is for whoever owns them to grant.
		}
		// A namespace that is being deleted forbids as well, and that is no matter of roles.
		Expect(event.Annotations).NotTo(HaveKeyWithValue("authorization.k8s.io/decision", "forbid"), request)
		used[request] = true
	}
	Expect(used).NotTo(BeEmpty())
	return used
}

// auditEvents reads what the operator's service account has asked for, discovery left out.
func auditEvents() []auditv1.Event {
	GinkgoHelper()
	file, err := os.Open(auditLog)
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	var events []auditv1.Event
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var event auditv1.Event
		Expect(json.Unmarshal(scanner.Bytes(), &event)).To(Succeed())
		if event.ObjectRef != nil {
			events = append(events, event)
		}
	}
	Expect(scanner.Err()).NotTo(HaveOccurred())
	return events
}

// partOfRing is what the names of published objects have behind that of their ring.
var partOfRing = regexp.MustCompile(`-(routing|[ab](-[0-9]+)?|[0-9]+)$`)

// writesOfOperator counts the operator's writes in a namespace by HashRing, its events left out. No name of a ring in the
// tests is the beginning of another.
func writesOfOperator(namespace string) map[string]int {
	GinkgoHelper()
	writes := map[string]int{}
	for _, event := range auditEvents() {
		ref := event.ObjectRef
		if ref.Namespace != namespace || ref.Resource == "events" || !slices.Contains([]string{"create", "update", "patch", "delete"}, event.Verb) {
			continue
		}
		writes[partOfRing.ReplaceAllString(ref.Name, "")]++
	}
	return writes
}

// status asks for a URL and returns the status code.
func status(url, token string) (int, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	c := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := c.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if response.StatusCode == http.StatusOK && strings.HasSuffix(url, "/metrics") && !strings.Contains(string(body), "controller_runtime_reconcile_total") {
		return 0, fmt.Errorf("the metrics lack those of the controller")
	}
	return response.StatusCode, err
}

// token makes a service account and returns a token for it.
func token(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, account))).To(Succeed())
	request := &authenticationv1.TokenRequest{}
	Expect(admin.SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}

// tableOf asks for HashRings in the form in which kubectl get asks.
func tableOf(ctx context.Context, namespace string) *metav1.Table {
	GinkgoHelper()
	config := rest.CopyConfig(controlPlane.Config())
	config.GroupVersion, config.APIPath = &v1alpha1.GroupVersion, "/apis"
	config.NegotiatedSerializer = serializer.WithoutConversionCodecFactory{CodecFactory: scheme.Codecs}
	c, err := rest.RESTClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	raw, err := c.Get().Namespace(namespace).Resource("hashrings").SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	table := &metav1.Table{}
	Expect(json.Unmarshal(raw, table)).To(Succeed())
	return table
}
