// SPDX-License-Identifier: Apache-2.0

package publish

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// ReadRecord returns what a ControllerRevision keeps, as it is there: neither digest nor recipe are checked.
func ReadRecord(object *appsv1.ControllerRevision) (plan.Record, error) {
	data, err := parseRecord(object)
	return plan.Record{Name: object.Name, Revision: object.Revision, Digest: data.Digest, Recipe: data.Recipe, Declared: data.Declared}, err
}

// IsRecord says that a ControllerRevision is one of a HashRing of this name: it has our labels, and the name that its number
// asks for.
func IsRecord(ringName string, object *appsv1.ControllerRevision) bool {
	return object.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByRingwright && object.Labels[v1alpha1.LabelRing] == ringName &&
		object.Name == plan.RecordName(ringName, object.Revision)
}
