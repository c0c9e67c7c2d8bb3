// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"github.com/ringwright/ringwright/pkg/ring"
)

// Movement returns how many positions of the key space have another owner on one ring than on the other, in the view of all
// backends. Both are opened, and under encoding Recipe built, for that.
func Movement(from, to *Ring) (uint64, error) {
	before, after, err := openBoth(from, to)
	if err != nil {
		return 0, err
	}
	return movementOf(before, after)
}

// WorstMovement returns the movement of the view that moves most, and the features of that view; none for the view of all
// backends. It looks at that, at the view of each feature that both rings have, and at each view of such features that one of them
// declares. Other combinations of features, which readers can ask for too, are not looked at.
func WorstMovement(from, to *Ring) (moved uint64, view []string, err error) {
	before, after, err := openBoth(from, to)
	if err != nil {
		return 0, nil, err
	}
	if moved, err = movementOf(before, after); err != nil {
		return 0, nil, err
	}
	for _, features := range commonViews(before, after) {
		n, err := movementOf(before, after, features...)
		if err != nil {
			return 0, nil, err
		}
		if n > moved {
			moved, view = n, features
		}
	}
	return moved, view, nil
}

// commonViews returns the views that readers of both rings are likely to have, but for that of all backends.
func commonViews(before, after *ring.Ring) [][]string {
	both := func(name string) bool {
		return slices.Contains(before.Features(), name) && slices.Contains(after.Features(), name)
	}
	var list [][]string
	for _, name := range after.Features() {
		list = append(list, []string{name})
	}
	for _, view := range slices.Concat(after.Views(), before.Views()) {
		if len(view) > 1 && !slices.ContainsFunc(list, func(known []string) bool { return slices.Equal(known, view) }) {
			list = append(list, view)
		}
	}
	return slices.DeleteFunc(list, func(view []string) bool {
		return slices.ContainsFunc(view, func(name string) bool { return !both(name) })
	})
}

func openBoth(from, to *Ring) (before, after *ring.Ring, err error) {
	if before, err = from.Open(); err != nil {
		return nil, nil, fmt.Errorf("opening ring %s: %w", from.Digest(), err)
	}
	if after, err = to.Open(); err != nil {
		return nil, nil, fmt.Errorf("opening ring %s: %w", to.Digest(), err)
	}
	return before, after, nil
}

func movementOf(before, after *ring.Ring, features ...string) (uint64, error) {
	a, err := before.TransientView(features...)
	if err != nil {
		return 0, err
	}
	b, err := after.TransientView(features...)
	if err != nil {
		return 0, err
	}
	return ring.Compare(a, b).Total, nil
}
