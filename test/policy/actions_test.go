// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// verbs are the virtual verbs that actions need.
var verbs = map[v1alpha1.ActionType]string{
	v1alpha1.ActionApprove: "approve", v1alpha1.ActionReject: "approve", v1alpha1.ActionPause: "pause", v1alpha1.ActionResume: "pause",
	v1alpha1.ActionRollback: "rollback", v1alpha1.ActionRetry: "retry", v1alpha1.ActionSkip: "override",
}

// newRole makes a ClusterRole of rules.
func newRole(ctx context.Context, name string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})).To(Succeed())
}

// creating is the rule that lets a user ask for anything at all.
var creating = rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"ringmigrationactions"}, Verbs: []string{"create"}}

var _ = DescribeTable("A user with role", func(ctx SpecContext, role string, may ...string) {
	name := "user-" + role
	c := user(ctx, name, "ringwright-"+role)
	for kind, verb := range verbs {
		err := c.Create(ctx, newAction("edge", kind, name), client.DryRunAll)
		if slices.Contains(may, verb) {
			Expect(err).NotTo(HaveOccurred(), string(kind))
			continue
		}
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %v", kind, err)
	}
	Expect(c.List(ctx, &v1alpha1.RingMigrationList{}, client.InNamespace(namespace))).To(Succeed())
	Expect(c.List(ctx, &v1alpha1.RingMigrationActionList{}, client.InNamespace(namespace))).To(Succeed())
},
	Entry(nil, "ringmigration-viewer-role"),
	Entry(nil, "ringmigration-oncall-role", "pause", "rollback"),
	Entry(nil, "ringmigration-editor-role", "pause", "rollback", "retry"),
	Entry(nil, "ringmigration-admin-role", "approve", "pause", "rollback", "retry", "override"),
)

var _ = Describe("A RingMigrationAction", func() {
	It("names the user who gives it, and nobody else, whoever that is", func(ctx SpecContext) {
		c := user(ctx, "mallory", "ringwright-ringmigration-admin-role")
		for _, creator := range []client.Client{c, admin} {
			err := creator.Create(ctx, newAction("edge", v1alpha1.ActionApprove, "alice"))
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring("spec.actor.username must be the user of the request; got alice, the user is ")))
		}
		Expect(c.Create(ctx, newAction("edge", v1alpha1.ActionApprove, "mallory"))).To(Succeed())
		Expect(admin.Create(ctx, newAction("edge", v1alpha1.ActionApprove, "admin"))).To(Succeed())
	})

	It("needs the verb, and the refusal says which, and the rule that gives it", func(ctx SpecContext) {
		newRole(ctx, "no-verbs", creating)
		c := user(ctx, "noverbs", "no-verbs")
		for kind, verb := range verbs {
			err := c.Create(ctx, newAction("edge", kind, "noverbs"))
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring("an action of type " + string(kind) + " needs the verb " + verb +
				" on ringmigrations edge, which user noverbs does not have in namespace " + namespace + "; this rule of a Role gives it: " +
				"{apiGroups: [ringwright.dev], resources: [ringmigrations], resourceNames: [edge], verbs: [" + verb + "]}")))
		}
	})

	It("can be allowed by that rule, for one RingMigration and one verb", func(ctx SpecContext) {
		newRole(ctx, "approves-edge", creating, rbacv1.PolicyRule{
			APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"ringmigrations"}, ResourceNames: []string{"edge"}, Verbs: []string{"approve"},
		})
		c := user(ctx, "approver", "approves-edge")
		Expect(c.Create(ctx, newAction("edge", v1alpha1.ActionApprove, "approver"))).To(Succeed())
		Expect(c.Create(ctx, newAction("edge", v1alpha1.ActionReject, "approver"))).To(Succeed())
		Expect(c.Create(ctx, newAction("other", v1alpha1.ActionApprove, "approver"))).To(MatchError(ContainSubstring("needs the verb approve on ringmigrations other")))
		Expect(c.Create(ctx, newAction("edge", v1alpha1.ActionSkip, "approver"))).To(MatchError(ContainSubstring("needs the verb override on ringmigrations edge")))
	})

	It("is given in the namespace where the verb is", func(ctx SpecContext) {
		newRole(ctx, "creates-anywhere", creating)
		c := user(ctx, "elsewhere", "ringwright-ringmigration-admin-role")
		other, err := controlPlane.CreateNamespace(ctx, "policy-")
		Expect(err).NotTo(HaveOccurred())
		Expect(admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "creates"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "creates-anywhere"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "elsewhere"}},
		})).To(Succeed())
		action := newAction("edge", v1alpha1.ActionRollback, "elsewhere")
		action.Namespace = other
		Expect(c.Create(ctx, action)).To(MatchError(ContainSubstring("does not have in namespace " + other)))
	})

	It("can be given with server-side apply, and then as well by its actor only", func(ctx SpecContext) {
		newRole(ctx, "applies", rbacv1.PolicyRule{APIGroups: creating.APIGroups, Resources: creating.Resources, Verbs: []string{"create", "patch"}})
		c := user(ctx, "applier", "ringwright-ringmigration-oncall-role", "applies")
		apply := func(actor string) error {
			action := newAction("edge", v1alpha1.ActionRollback, actor)
			action.GenerateName, action.Name = "", "applied"
			return c.Apply(ctx, configurationOf(action), client.FieldOwner("test"))
		}
		Expect(apply("alice")).To(MatchError(ContainSubstring("got alice, the user is applier")))
		Expect(apply("applier")).To(Succeed())
		Expect(apply("applier")).To(Succeed())
		Expect(apply("alice")).To(MatchError(ContainSubstring("spec cannot be changed")))
	})

	It("twice over, or of a step that is over, is not refused here: the operator answers", func(ctx SpecContext) {
		c := user(ctx, "twice", "ringwright-ringmigration-admin-role")
		for range 2 {
			Expect(c.Create(ctx, newAction("edge", v1alpha1.ActionApprove, "twice"))).To(Succeed())
		}
		stale := newAction("edge", v1alpha1.ActionApprove, "twice")
		stale.Spec.Step.Token = "1.0.0-0"
		Expect(c.Create(ctx, stale)).To(Succeed())
	})
})

var _ = DescribeTable("The status is the operator's: it is not written with role", func(ctx SpecContext, role string) {
	name := "status-" + role
	c := user(ctx, name, "ringwright-"+role)
	migration, action := newMigration(name), newAction("edge", v1alpha1.ActionPause, "admin")
	Expect(admin.Create(ctx, migration)).To(Succeed())
	Expect(admin.Create(ctx, action)).To(Succeed())
	history := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"history":[]}}`))
	for _, object := range []client.Object{migration, action, &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edge"}}} {
		Expect(apierrors.IsForbidden(c.Status().Update(ctx, object))).To(BeTrue())
		Expect(apierrors.IsForbidden(c.Status().Patch(ctx, object, history))).To(BeTrue())
	}
	Expect(apierrors.IsForbidden(c.Patch(ctx, action, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))))).To(BeTrue())
},
	Entry(nil, "ringmigration-viewer-role"), Entry(nil, "ringmigration-oncall-role"), Entry(nil, "ringmigration-editor-role"),
	Entry(nil, "ringmigration-admin-role"), Entry(nil, "hashring-editor-role"), Entry(nil, "hashring-admin-role"),
)

var _ = Describe("The plan", func() {
	It("is edited by editors and admins, and by nobody else", func(ctx SpecContext) {
		Expect(admin.Create(ctx, newMigration("edited"))).To(Succeed())
		for role, may := range map[string]bool{"viewer": false, "oncall": false, "editor": true, "admin": true} {
			c := user(ctx, "plans-"+role, "ringwright-ringmigration-"+role+"-role")
			m := newMigration("edited")
			err := c.Patch(ctx, m, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":true}}`)))
			Expect(err == nil).To(Equal(may), "%s: %v", role, err)
			err = c.Delete(ctx, m, client.DryRunAll)
			Expect(err == nil).To(Equal(may), "%s: %v", role, err)
			err = c.Create(ctx, newMigration("created"), client.DryRunAll)
			Expect(err == nil).To(Equal(may), "%s: %v", role, err)
		}
	})
})
