// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/catalog"
)

const firstCopy, secondCopy = "ringwright-catalog-20260301t120000z", "ringwright-catalog-20260302t120000z"

func catalogIn(t *testing.T, name string, c catalog.Catalog) *corev1.ConfigMap {
	t.Helper()
	payload, err := c.Pack()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{v1alpha1.LabelCatalog: v1alpha1.CatalogCopy}
	if name == catalog.Name {
		labels[v1alpha1.LabelCatalog] = v1alpha1.CatalogCurrent
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: defaultCatalogNamespace, Name: name, Labels: labels},
		Data:       payload.Data, BinaryData: payload.BinaryData,
	}
}

func sampleCatalog() catalog.Catalog {
	digest := "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	return catalog.Catalog{
		Rings: []catalog.Ring{
			{Namespace: "app", Name: "new", UID: "1"},
			{Namespace: "cdn", Name: "edge", UID: "2", Digest: digest, Revision: 12, Points: 480, Bytes: 2112, Algorithm: "V2", State: "RingPublished"},
		},
		Tombstones: []catalog.Tombstone{
			{Namespace: "cdn", Name: "old", UID: "3", Digest: digest, Revision: 7, Until: "2026-03-04T12:00:00Z"},
			{Namespace: "dev", Name: "lost", Until: "2026-03-04T12:00:01Z"},
		},
	}
}

func weightCatalog() catalog.Catalog {
	c := catalog.Catalog{Rings: sampleCatalog().Rings[:1]}
	c.WeightPolicies = []catalog.WeightPolicy{
		{Namespace: "cdn", Name: "edge-load", UID: "4", Target: "HashRing/edge", Endpoints: 48, State: "WeightsServed"},
		{Namespace: "shop", Name: "new", UID: "5", Target: "Service/new:grpc"},
	}
	c.WeightTombstones = []catalog.WeightTombstone{
		{Namespace: "cdn", Name: "old-load", UID: "6", Ring: "old", Version: 77, Sets: 1, Until: "2026-03-04T12:00:00Z"},
		{Namespace: "shop", Name: "old", UID: "7", Version: 1234, Sets: 3},
	}
	return c
}

func TestCatalog(t *testing.T) {
	store := liveOf(t, catalogIn(t, catalog.Name, sampleCatalog()), catalogIn(t, firstCopy, catalog.Catalog{}), catalogIn(t, secondCopy, weightCatalog()),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: defaultCatalogNamespace, Name: "ringwright-catalog-notes", Labels: map[string]string{v1alpha1.LabelCatalog: v1alpha1.CatalogCopy},
		}}).client
	for name, row := range map[string]struct {
		format     format
		name, only string
	}{
		"table":     {formatTable, catalog.Name, ""},
		"json":      {formatJSON, catalog.Name, ""},
		"yaml":      {formatYAML, catalog.Name, ""},
		"namespace": {formatTable, catalog.Name, "cdn"},
		"at":        {formatTable, firstCopy, ""},
		"weights":   {formatTable, secondCopy, ""},
		"shop":      {formatTable, secondCopy, "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			o := &catalogOptions{
				streams: genericiooptions.IOStreams{Out: &out}, flags: &catalogFlags{namespace: defaultCatalogNamespace}, output: &formatFlag{value: row.format},
			}
			if err := o.run(t.Context(), store, row.name, row.only); err != nil {
				t.Fatal(err)
			}
			assertGolden(t, "catalog-"+name, out.String())
		})
	}
	o := &catalogOptions{flags: &catalogFlags{namespace: "other"}}
	wantError(t, o.run(t.Context(), store, catalog.Name, ""), "ConfigMap other/ringwright-catalog does not exist: --catalog-namespace must be")
}

func TestCatalogReportsDamage(t *testing.T) {
	damaged := catalogIn(t, catalog.Name, sampleCatalog())
	damaged.Data = map[string]string{"other": "x"}
	o := &catalogOptions{flags: &catalogFlags{namespace: defaultCatalogNamespace}}
	wantError(t, o.run(t.Context(), liveOf(t, damaged).client, catalog.Name, ""),
		"ConfigMap ringwright-system/ringwright-catalog: there is neither catalog.json nor catalog.json.gz")
}

// restoring returns the rings of a catalog in every state, and the objects behind them. Revision 4 of edge has the snapshot of 3.
func restoring(t *testing.T, active int64) (catalog.Catalog, []client.Object) {
	t.Helper()
	objects := history(t)
	now, before := builtOf(t, edgeManifest).Ring.Digest(), builtOf(t, withoutC1).Ring.Digest()
	edge := ringIn(t, objects)
	if active == 2 {
		edge.Status.Active.Digest, edge.Status.Active.Revision = before, 2
	}
	lost, fresh := edge.DeepCopy(), edge.DeepCopy()
	lost.Name, lost.UID, lost.ResourceVersion = "lost", types.UID("lost"), ""
	fresh.Name, fresh.UID, fresh.Status = "fresh", types.UID("fresh"), v1alpha1.HashRingStatus{}
	return catalog.Catalog{Rings: []catalog.Ring{
		{Namespace: "app", Name: "elsewhere", Digest: now, Revision: 1},
		{Namespace: "cdn", Name: "edge", Digest: now, Revision: 3},
		{Namespace: "cdn", Name: "fresh"},
		{Namespace: "cdn", Name: "gone", Digest: now, Revision: 1},
		{Namespace: "cdn", Name: "lost", Digest: trimmedDigest, Revision: 1},
	}}, append(objects, lost, fresh)
}

const trimmedDigest = "sha256:fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

// heedingDryRun does what the store of a test does not: an apply that is dry changes nothing.
func heedingDryRun(store client.Client) client.Client {
	return interceptor.NewClient(store.(client.WithWatch), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			options := client.ApplyOptions{}
			for _, o := range opts {
				o.ApplyToApply(&options)
			}
			if len(options.DryRun) > 0 {
				return nil
			}
			return c.Apply(ctx, object, opts...)
		},
	})
}

func TestCatalogRestore(t *testing.T) {
	for name, row := range map[string]struct {
		active   int64
		revision int64 // That of edge in the copy.
		dryRun   bool
		only     string
		failed   string
		pinned   int64
	}{
		"restored":                   {2, 3, false, "cdn", "2 of 4 rings cannot be restored", 3},
		"from another of its bytes":  {2, 1, false, "cdn", "2 of 4 rings cannot be restored", 4},
		"dry":                        {2, 3, true, "cdn", "2 of 4 rings cannot be restored", 0},
		"as it is":                   {4, 3, false, "cdn", "2 of 4 rings cannot be restored", 0},
		"all":                        {2, 3, false, "", "3 of 5 rings cannot be restored", 3},
		"a namespace without a ring": {2, 3, false, "dev", "ConfigMap " + defaultCatalogNamespace + "/" + firstCopy + " has no ring in namespace dev: -n takes another namespace, -A all", 0},
	} {
		t.Run(name, func(t *testing.T) {
			content, objects := restoring(t, row.active)
			content.Rings[1].Revision = row.revision
			store := heedingDryRun(liveOf(t, append(objects, catalogIn(t, firstCopy, content))...).client)
			var out bytes.Buffer
			o := &catalogRestoreOptions{
				streams: genericiooptions.IOStreams{Out: &out}, flags: &catalogFlags{namespace: defaultCatalogNamespace},
				output: &formatFlag{value: formatTable}, dryRun: row.dryRun,
			}
			err := o.run(t.Context(), store, firstCopy, row.only)
			if row.failed == "" && err != nil || row.failed != "" && (err == nil || err.Error() != row.failed) {
				t.Errorf("got %v, want %s", err, row.failed)
			}
			assertGolden(t, "catalog-restore-"+strings.ReplaceAll(name, " ", "-"), out.String())
			ring := &v1alpha1.HashRing{}
			if err := store.Get(t.Context(), client.ObjectKey{Namespace: "cdn", Name: "edge"}, ring); err != nil {
				t.Fatal(err)
			}
			got := int64(0)
			if ring.Spec.PinnedRevision != nil {
				got = *ring.Spec.PinnedRevision
			}
			if got != row.pinned {
				t.Errorf("pinned to %d, want %d", got, row.pinned)
			}
		})
	}
}

func TestCatalogUsage(t *testing.T) {
	for want, args := range map[string][]string{
		`unexpected argument "x": kubectl hashring catalog takes none`:                  {"catalog", "x"},
		`--at: "yesterday" is no copy of the catalog: it must be like 20260301t120000z`: {"catalog", "--at", "yesterday"},
		`--at: "" is no copy of the catalog`:                                            {"catalog", "--at", ""},
		`--at: "ringwright-catalog" is no copy`:                                         {"catalog", "restore", "--at", "ringwright-catalog"},
		`--at is missing: "kubectl hashring catalog" lists the copies`:                  {"catalog", "restore"},
		`--namespace and --all-namespaces cannot be used together`:                      {"catalog", "restore", "--at", firstCopy, "-A", "-n", "cdn"},
		`unexpected argument "edge": kubectl hashring catalog restore`:                  {"catalog", "restore", "edge"},
	} {
		wantContains(t, fail(t, ExitUsage, args...), want)
	}
	assertGolden(t, "help-catalog-restore", succeed(t, "", "catalog", "restore", "--help"))
}
