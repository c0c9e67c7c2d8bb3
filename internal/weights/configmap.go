// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// FileName is the name of the file of weights in a ConfigMap.
const FileName = "weights.json"

// maxConfigMap is how large the file may be: an object of the API server has at most 1 MiB.
const maxConfigMap = 1_000_000

// File is weights.json: the weights of a policy for readers without xDS. Fields are added, and never change their meaning.
type File struct {
	// APIVersion is "ringwright.dev/v1alpha1".
	APIVersion string `json:"apiVersion"`
	// Policy is namespace/name.
	Policy string `json:"policy"`
	// Version grows with every change.
	Version int64 `json:"version"`
	// Endpoints are in the order of their IDs.
	Endpoints []FileEndpoint `json:"endpoints"`
}

// FileEndpoint is an endpoint with its weight.
type FileEndpoint struct {
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Address string `json:"address"`
	Port    int32  `json:"port"`
	Zone    string `json:"zone,omitempty"`
	// Weight is 10000 for the mean.
	Weight uint32 `json:"weight"`
	Ready  bool   `json:"ready"`
}

// file returns weights.json with a line feed at the end.
func (h *holding) file() ([]byte, error) {
	f := File{APIVersion: v1alpha1.GroupVersion.String(), Policy: h.policy.String(), Version: h.version, Endpoints: make([]FileEndpoint, 0, len(h.endpoints))}
	for _, e := range h.endpoints {
		f.Endpoints = append(f.Endpoints, FileEndpoint{
			ID: e.ID, Name: e.Pod, Address: e.Address, Port: e.Port, Zone: e.Zone, Weight: h.served[e.ID], Ready: e.Ready,
		})
	}
	data, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", FileName, err)
	}
	return append(data, '\n'), nil
}

// fileOf is the name of the ConfigMap that a policy asks for, "" for none.
func fileOf(policy *v1alpha1.WeightPolicy) string {
	if policy.Spec.Publish.ConfigMap == nil {
		return ""
	}
	return policy.Spec.Publish.ConfigMap.Name
}

// keepFile has the ConfigMap that a policy asks for written at its pace, and deletes one that it does not ask for any more. What somebody has to
// mend is kept for the status: weights go on to be computed and served.
func (r *Reconciler) keepFile(ctx context.Context, policy *v1alpha1.WeightPolicy, h *holding) error {
	now, wanted := r.Clock.Now(), fileOf(policy)
	if h.fileName != "" && h.fileName != wanted {
		if err := r.deleteFile(ctx, h.policy, h.fileName); err != nil {
			return fmt.Errorf("deleting ConfigMap %s, which the policy does not ask for any more: %w", h.fileName, err)
		}
	}
	if h.fileName != wanted {
		h.fileName, h.unpublished, h.pace.configMap = wanted, nil, time.Time{}
	}
	if wanted == "" || now.Sub(h.pace.configMap) < configMapInterval/time.Duration(max(1, r.Pace)) {
		return nil
	}
	h.pace.configMap, h.unpublished = now, nil
	err := r.publishFile(ctx, policy, h)
	if errors.As(err, &h.unpublished) {
		return nil
	}
	return err
}

// publishFile writes the ConfigMap that a policy asks for. One that is not its own is left alone, which is a *targetError.
func (r *Reconciler) publishFile(ctx context.Context, policy *v1alpha1.WeightPolicy, h *holding) error {
	data, err := h.file()
	if err != nil {
		return err
	}
	name := fileOf(policy)
	if len(data) > maxConfigMap {
		return refused(v1alpha1.ReasonPublishFailed, "ConfigMap %s: %s of %d endpoints has %d bytes, the limit is %d", name, FileName, len(h.endpoints), len(data), maxConfigMap)
	}
	wanted := map[string]string{v1alpha1.LabelWeightPolicy: policy.Name} // Without the label of the operator, which would cache it.
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: policy.Namespace, Name: name}
	err = r.Live.Get(ctx, key, cm)
	if apierrors.IsNotFound(err) {
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: wanted}, Data: map[string]string{FileName: string(data)}}
		return r.Client.Create(ctx, cm, client.FieldOwner(v1alpha1.FieldManagerBalancer))
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", name, err)
	}
	if cm.Labels[v1alpha1.LabelWeightPolicy] != policy.Name {
		return refused(v1alpha1.ReasonNameConflict, "ConfigMap %s exists and is not this policy's: it has no label %s=%s", name, v1alpha1.LabelWeightPolicy, policy.Name)
	}
	if cm.Data[FileName] == string(data) {
		return nil
	}
	for label, value := range wanted {
		metav1.SetMetaDataLabel(&cm.ObjectMeta, label, value)
	}
	cm.Data, cm.BinaryData = map[string]string{FileName: string(data)}, nil
	return r.Client.Update(ctx, cm, client.FieldOwner(v1alpha1.FieldManagerBalancer))
}

// deleteFile deletes the ConfigMap of a policy, if it is its own.
func (r *Reconciler) deleteFile(ctx context.Context, policy types.NamespacedName, name string) error {
	cm := &corev1.ConfigMap{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: policy.Namespace, Name: name}, cm); err != nil {
		return client.IgnoreNotFound(err)
	}
	if cm.Labels[v1alpha1.LabelWeightPolicy] != policy.Name {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Delete(ctx, cm, client.Preconditions{UID: &cm.UID}))
}
