// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// clockSkew is how far the clocks of the operator and of the API server may be apart before a pod that was made before a publication is
// taken for one that started with it.
const clockSkew = time.Minute

// Mounting is a pod that runs, is selected by spec.consumers, and mounts a ConfigMap of the ring.
type Mounting struct {
	Name string
	// Made is when the API server made it.
	Made time.Time
	// Mark is the value of [TouchAnnotation] on it; "" without.
	Mark string
	// Refusal says why it could not be touched with the mark RefusedMark; "" where it was not tried, or not refused.
	Refusal, RefusedMark string
}

// Refresh is what is known of the pods that are touched for a ring.
type Refresh struct {
	// Invalid says why spec.consumers.selector is none; "" where it is one.
	Invalid string
	// Forbidden says why the operator may not patch pods in the namespace; "" where it may, or nobody has found out.
	Forbidden string
	// Pods are in the order of their names.
	Pods []Mounting
}

// TouchesPods says that spec asks for pods to be touched.
func TouchesPods(r *v1alpha1.HashRing) bool {
	return r.Spec.Consumers != nil && r.Spec.Consumers.Refresh == v1alpha1.RefreshTouchPods
}

// TouchAnnotation returns the annotation with which pods are touched for a ring. A name that is too long for an annotation is cut, and
// tells itself from others by a digest.
func TouchAnnotation(ringName string) string {
	const (
		nameBytes   = 63 // What is behind the slash of an annotation.
		digestBytes = 4
	)
	limit := nameBytes - len("snapshot-")
	if len(ringName) > limit {
		digest := sha256.Sum256([]byte(ringName))
		suffix := "-" + hex.EncodeToString(digest[:digestBytes])
		ringName = ringName[:limit-len(suffix)] + suffix
	}
	return v1alpha1.AnnotationSnapshotPrefix + ringName
}

// TouchMark returns the value of the annotation for what a status says is published; "" where nothing is. No other publication has it.
func TouchMark(s v1alpha1.HashRingStatus) string {
	const digits = 12
	if s.Routing == nil {
		return ""
	}
	digest := strings.TrimPrefix(s.Routing.Digest, "sha256:")
	return fmt.Sprintf("%d-%s", s.Routing.Generation, digest[:min(digits, len(digest))])
}

// Due says that a pod is to be touched for what a status says is published. One that was made after it starts with it.
func (m Mounting) Due(s v1alpha1.HashRingStatus) bool {
	mark := TouchMark(s)
	if mark == "" || m.Mark == mark {
		return false
	}
	return s.Active == nil || m.Made.Before(s.Active.PublishedAt.Add(clockSkew))
}

// refused says that a pod is due and could not be touched.
func (m Mounting) refused(s v1alpha1.HashRingStatus) bool {
	return m.Refusal != "" && m.RefusedMark == TouchMark(s) && m.Due(s)
}

// setRefreshed sets condition Refreshed and status.refresh, where spec asks for pods to be touched. It comes after all else of the status.
// What is not known stays as it was.
func (c conditionSetter) setRefreshed(s *v1alpha1.HashRingStatus, r *v1alpha1.HashRing, d Decision) {
	known := d.Refresh
	switch {
	case !TouchesPods(r):
		s.Refresh = nil
		meta.RemoveStatusCondition(c.list, string(v1alpha1.ConditionRefreshed))
	case known == nil || s.Routing == nil:
		c.keep(v1alpha1.ConditionRefreshed, metav1.ConditionUnknown, v1alpha1.ReasonPublishFailed, unread)
	case known.Invalid != "":
		s.Refresh = nil
		c.set(v1alpha1.ConditionRefreshed, metav1.ConditionFalse, v1alpha1.ReasonInvalidSelector, "spec.consumers.selector: "+known.Invalid)
	default:
		s.Refresh = countTouched(*s, known.Pods)
		status, reason, message := refreshed(r.Namespace, *s, known)
		c.set(v1alpha1.ConditionRefreshed, status, reason, message)
	}
}

func countTouched(s v1alpha1.HashRingStatus, pods []Mounting) *v1alpha1.RefreshStatus {
	count := &v1alpha1.RefreshStatus{Generation: s.Routing.Generation, Total: int32(len(pods))}
	for _, pod := range pods {
		switch {
		case !pod.Due(s):
			count.Touched++
		case pod.refused(s):
			count.Refused++
		}
	}
	return count
}

// bySync says what becomes of a publication without a touch.
const bySync = "kubelets bring what is published when they next sync the pods"

// refreshed says what condition Refreshed makes of the figures.
func refreshed(namespace string, s v1alpha1.HashRingStatus, known *Refresh) (metav1.ConditionStatus, v1alpha1.ConditionReason, string) {
	n := s.Refresh
	switch {
	case known.Forbidden != "":
		return metav1.ConditionFalse, v1alpha1.ReasonTouchForbidden, fmt.Sprintf(
			"the operator may not patch pods in namespace %s (%s): apply config/components/touch-pods, or set spec.consumers.refresh to Kubelet; until then %s",
			namespace, known.Forbidden, bySync)
	case n.Total == 0:
		return metav1.ConditionUnknown, v1alpha1.ReasonNoPodsFound, "no running pod that spec.consumers selects mounts a ConfigMap of the ring"
	case n.Refused > 0:
		return metav1.ConditionFalse, v1alpha1.ReasonPodsRefused, fmt.Sprintf(
			"%d of %d pods that mount the ring could not be touched for routing generation %d, and %s: %s", n.Refused, n.Total, n.Generation, bySync, nameRefused(s, known.Pods))
	case n.Touched < n.Total:
		return metav1.ConditionFalse, v1alpha1.ReasonTouchingPods, fmt.Sprintf(
			"%d of %d pods that mount the ring were touched for routing generation %d", n.Touched, n.Total, n.Generation)
	default:
		return metav1.ConditionTrue, v1alpha1.ReasonAllPodsTouched, fmt.Sprintf(
			"%d of %d pods that mount the ring were touched for routing generation %d, or started with it", n.Touched, n.Total, n.Generation)
	}
}

// nameRefused names the first pods that could not be touched, and says why.
func nameRefused(s v1alpha1.HashRingStatus, pods []Mounting) string {
	const named, reasonBytes = 3, 200
	var names []string
	more := 0
	for _, pod := range pods {
		switch {
		case !pod.refused(s):
		case len(names) == named:
			more++
		default:
			names = append(names, fmt.Sprintf("%s (%s)", pod.Name, truncateTo(pod.Refusal, reasonBytes)))
		}
	}
	text := strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
