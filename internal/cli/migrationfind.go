// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// maxSuggested is how many names an error suggests.
const maxSuggested = 10

// notFoundError says that there is no RingMigration of a name, and which one may be meant.
type notFoundError struct{ message string }

func (e *notFoundError) Error() string { return e.message }

// notFound says that the migration does not exist. What else there is, it says as far as that can be read.
func (l liveMigration) notFound(ctx context.Context) error {
	message := fmt.Sprintf("%s does not exist", l)
	list := &v1alpha1.RingMigrationList{}
	if err := l.client.List(ctx, list, client.InNamespace(l.namespace)); err != nil {
		return &notFoundError{message}
	}
	hashRing := &v1alpha1.HashRing{}
	if err := l.client.Get(ctx, l.key(), hashRing); err == nil {
		return &notFoundError{message + ": " + ofHashRing(list.Items, hashRing)}
	}
	var names []string
	for _, m := range list.Items {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	switch near := nearest(l.name, names); {
	case len(names) == 0:
		message += fmt.Sprintf(": there is none in namespace %s", l.namespace)
	case near != "":
		message += fmt.Sprintf(": did you mean %s?", near)
	case len(names) > maxSuggested:
		message += fmt.Sprintf(": namespace %s has %s and %d others", l.namespace, strings.Join(names[:maxSuggested], ", "), len(names)-maxSuggested)
	default:
		message += fmt.Sprintf(": namespace %s has %s", l.namespace, strings.Join(names, ", "))
	}
	return &notFoundError{message}
}

// ofHashRing says which migrations a HashRing has whose name was given.
func ofHashRing(migrations []v1alpha1.RingMigration, hashRing *v1alpha1.HashRing) string {
	var names []string
	for i := range migrations {
		if moves(&migrations[i], hashRing) {
			names = append(names, migrations[i].Name)
		}
	}
	slices.Sort(names)
	switch len(names) {
	case 0:
		return "that is the name of a HashRing, which no RingMigration moves"
	case 1:
		return fmt.Sprintf("that is the name of a HashRing, which RingMigration %s moves: name that", names[0])
	default:
		return fmt.Sprintf("that is the name of a HashRing, which %d RingMigrations move: name one of %s", len(names), strings.Join(names, ", "))
	}
}

// moves says whether a migration is one of a HashRing.
func moves(migration *v1alpha1.RingMigration, hashRing *v1alpha1.HashRing) bool {
	if ref := migration.Spec.RingRef; ref != nil {
		return ref.Name == hashRing.Name
	}
	if len(migration.Status.Rings) > 0 {
		return slices.ContainsFunc(migration.Status.Rings, func(r v1alpha1.MigrationRing) bool { return r.Name == hashRing.Name })
	}
	selector, err := metav1.LabelSelectorAsSelector(migration.Spec.RingSelector)
	return err == nil && selector.Matches(labels.Set(hashRing.Labels))
}

// nearest returns the name that another one is most likely a slip of; "" where none is near.
func nearest(name string, names []string) string {
	best, distance := "", max(len(name)/3, 1)+1
	for _, candidate := range names {
		if d := editDistance(name, candidate); d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

// editDistance is how many letters have to be added, dropped or changed, the Levenshtein distance.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
