// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/internal/publish"
	"github.com/ringwright/ringwright/pkg/ring"
)

// TestStripRecord: the cache keeps digests in place of what can be a megabyte.
func TestStripRecord(t *testing.T) {
	for name, row := range map[string]struct{ data, content, file string }{
		"ours": {`{"digest":"sha256:1","recipe":"YWJj"}`, ring.Digest([]byte("abc")), "sha256:1"},
		"ours, with sources": {
			`{"digest":"sha256:1","recipe":"YWJj","declared":["a","b"]}`, ring.Digest([]byte(ring.Digest([]byte("abc")) + "\na\nb")), "sha256:1",
		},
		"another":  {`{"spec":{"template":{}}}`, ring.Digest(nil), ""},
		"no JSON":  {`{`, "", ""},
		"bad type": {`{"recipe":7}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			record := &appsv1.ControllerRevision{
				ObjectMeta: metav1.ObjectMeta{Name: "edge-1", Annotations: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{}}},
				Data:       runtime.RawExtension{Raw: []byte(row.data)},
			}
			for range 2 { // The second time has nothing left to do.
				if _, err := publish.StripRecord(record); err != nil {
					t.Fatal(err)
				}
				want := map[string]string{"a": "b", "content digest": row.content, "file digest": row.file}
				if row.file == "" && row.content == "" {
					delete(want, "file digest")
				}
				if diff := cmp.Diff(want, record.Annotations); diff != "" {
					t.Errorf("annotations (-want +got):\n%s", diff)
				}
				if record.Data.Raw != nil || record.ManagedFields != nil {
					t.Errorf("%d bytes and %d managed fields are left", len(record.Data.Raw), len(record.ManagedFields))
				}
			}
		})
	}
	if _, err := publish.StripRecord(&corev1.ConfigMap{}); err == nil {
		t.Error("a ConfigMap is taken for a record")
	}
}
