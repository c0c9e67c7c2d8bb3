// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

func TestRevisionBefore(t *testing.T) {
	for name, test := range map[string]struct {
		pinned, active int64
		kept           []client.Object
		want           int64
		err            string
	}{
		"another snapshot": {active: 3, want: 2, kept: []client.Object{
			recordOf(t, 1, edgeManifest), recordOf(t, 2, withoutC1), recordOf(t, 3, edgeManifest),
		}},
		"the same snapshot twice": {active: 4, want: 2, kept: []client.Object{
			recordOf(t, 2, withoutC1), recordOf(t, 3, edgeManifest), recordOf(t, 4, edgeManifest),
		}},
		"again, before the pinned one": {pinned: 2, active: 4, want: 1, kept: []client.Object{
			recordOf(t, 1, edgeManifest), recordOf(t, 2, withoutC1), recordOf(t, 3, trimmedV3), recordOf(t, 4, withoutC1),
		}},
		"none before": {active: 3, kept: []client.Object{recordOf(t, 3, edgeManifest), recordOf(t, 4, withoutC1)},
			err: "no revision of HashRing cdn/edge before revision 3 is kept that has another snapshot"},
		"only the same before": {active: 3, kept: []client.Object{recordOf(t, 2, edgeManifest), recordOf(t, 3, edgeManifest)},
			err: "no revision of HashRing cdn/edge before revision 3 is kept that has another snapshot"},
		"nothing published": {kept: []client.Object{recordOf(t, 1, edgeManifest)},
			err: "HashRing cdn/edge has published nothing that it could go back from"},
		"the published one is not kept": {active: 9, kept: []client.Object{recordOf(t, 1, edgeManifest)},
			err: "revision 9 of HashRing cdn/edge is not kept, so it cannot be told which one was before"},
	} {
		t.Run(name, func(t *testing.T) {
			ring := hashRingOf(t, edgeManifest)
			if test.pinned > 0 {
				ring.Spec.PinnedRevision = &test.pinned
			}
			if test.active > 0 {
				ring.Status.Active = &v1alpha1.ActiveRing{Revision: test.active}
			}
			got, err := liveOf(t, test.kept...).revisionBefore(t.Context(), ring)
			if got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
			if test.err != "" || err != nil {
				wantError(t, err, test.err)
			}
		})
	}
}

// TestGoingBackIsNotBlocked by what is published being broken: that can be why somebody goes back.
func TestGoingBackIsNotBlocked(t *testing.T) {
	objects := history(t)
	for _, object := range objects {
		if cm, ok := object.(*corev1.ConfigMap); ok && cm.Name == "edge-routing" {
			cm.Data = map[string]string{"routing.json": "{"}
		}
	}
	var out bytes.Buffer
	o := &rollbackOptions{streams: genericiooptions.IOStreams{Out: &out}}
	if err := o.showPinned(t.Context(), liveOf(t, objects...), 2); err != nil {
		t.Fatal(err)
	}
	wantContains(t, out.String(), "note: what moves cannot be told: ConfigMap cdn/edge-routing: ")
}

func TestUnpinSaysWhatMoves(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.HashRing)
		want   string
	}{
		"to spec":     {func(r *v1alpha1.HashRing) { r.Spec.Backends = r.Spec.Backends[1:] }, " of the key space moves."},
		"to the same": {func(*v1alpha1.HashRing) {}, "Nothing moves, and nothing would be published"},
		"to the candidate": {func(r *v1alpha1.HashRing) { r.Status.Candidate = &v1alpha1.CandidateRing{Movement: "7.31%"} },
			"Without the pin spec asks for a ring that moves 7.31% of the key space: status.candidate describes it.\n"},
		"to Services": {func(r *v1alpha1.HashRing) {
			r.Spec.BackendsFrom = []v1alpha1.BackendSource{{Service: v1alpha1.ServicePort{Name: "cache"}}}
		}, "note: what moves cannot be told: spec takes backends from Services\n"},
		"to what is refused": {func(r *v1alpha1.HashRing) { r.Spec.Backends = nil }, "note: what moves cannot be told: HashRing cdn/edge: "},
	} {
		t.Run(name, func(t *testing.T) {
			objects := history(t)
			ring := ringIn(t, objects)
			ring.Spec.PinnedRevision = ptr.To[int64](3)
			test.change(ring)
			var out bytes.Buffer
			o := &rollbackOptions{streams: genericiooptions.IOStreams{Out: &out}, unpin: true, dryRun: true}
			if err := o.run(t.Context(), liveOf(t, objects...)); err != nil {
				t.Fatal(err)
			}
			wantContains(t, out.String(), test.want)
			wantContains(t, out.String(), "\nHashRing cdn/edge would no longer be pinned to revision 3: nothing was changed.\n")
		})
	}
}
