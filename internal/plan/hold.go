// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// The defaults of spec.membership where spec does not set them; the schema has the same.
const (
	DefaultMinBackends = 1
	DefaultMaxRemoved  = "50%"
)

// maxHeldBackends is how many backends a hold names in the status.
const maxHeldBackends = 16

// million is what percentages are counted in.
const million = 1_000_000

// Hold is what keeps the ring from following spec or its sources.
type Hold struct {
	Reason  v1alpha1.ConditionReason
	Message string
	// Backends are the identities that it is about, sorted.
	Backends []string
	// Token is what a release has to name; "" where none ends the hold.
	Token string
	// Blocks says that the ring would be another one now, were it not held. Before, the delays of membership are not over.
	Blocks bool
}

// hold returns what keeps the removals of m from being made, nil where nothing does. Revision is the published one.
func (m membership) hold(spec v1alpha1.HashRingSpec, revision int64) (*Hold, error) {
	maxRemoved, err := parsePercent("spec.membership.maxRemoved", spec.Membership.MaxRemoved, DefaultMaxRemoved)
	if err != nil {
		return nil, err
	}
	minimum, left := minBackends(spec), weighted(m.backends)
	switch {
	case left < minimum && left < m.placed:
		backends := slices.Sorted(slices.Values(slices.Concat(m.lost, m.drained)))
		return &Hold{
			Reason: v1alpha1.ReasonBelowMinimum, Backends: backends, Blocks: true,
			Message: fmt.Sprintf("%d backends of a weight above 0 would be left, spec.membership.minBackends is %d: none is removed or drained until others join or come back, or get a weight; %s", left, minimum, listOf(backends)),
		}, nil
	case len(m.lost) > 0 && m.losesTooMany(uint64(maxRemoved)):
		return &Hold{
			Reason: v1alpha1.ReasonSuddenLoss, Backends: m.lost, Blocks: m.removes, Token: lossToken(m.lost, revision),
			Message: fmt.Sprintf("%s, more than spec.membership.maxRemoved %s: none is removed until enough of them come back, or kubectl hashring release confirms the loss; %s",
				m.lossText(), percentOr(spec.Membership.MaxRemoved, DefaultMaxRemoved), listOf(m.lost)),
		}, nil
	}
	return nil, nil
}

// lossText says how many are lost, of how many.
func (m membership) lossText() string {
	if net := m.reference - m.left(); m.undeclared <= net {
		return fmt.Sprintf("%d of %d backends are lost (gone, not ready or taken out of spec, with no others in their place)", net, m.reference)
	}
	return fmt.Sprintf("%d of %d placed backends are taken out of spec at one time", m.undeclared, m.placed)
}

// losesTooMany compares with a part in millionths. Pods that take the place of others make up for them; backends in place of
// those that an edit takes out of spec do not.
func (m membership) losesTooMany(maxRemoved uint64) bool {
	return uint64(m.left())*million < uint64(m.reference)*(million-maxRemoved) || uint64(m.undeclared)*million > uint64(m.placed)*maxRemoved
}

// lossToken names the backends that a revision has lost, so that a release confirms that and no other loss: neither a larger one,
// nor the same one after they had come back.
func lossToken(lost []string, revision int64) string {
	sum := sha256.Sum256([]byte(strconv.FormatInt(revision, 10) + "\n" + strings.Join(lost, "\n")))
	return hex.EncodeToString(sum[:8])
}

// listOf names the first of some backends.
func listOf(ids []string) string {
	const shown = 5
	text := strings.Join(ids[:min(len(ids), shown)], ", ")
	if len(ids) > shown {
		text += fmt.Sprintf(" and %d more", len(ids)-shown)
	}
	return text
}

// status returns what the status says of a hold. What was held before for the same reason goes on.
func (h *Hold) status(last *v1alpha1.Hold, now time.Time) *v1alpha1.Hold {
	if h == nil {
		return nil
	}
	s := &v1alpha1.Hold{
		Reason: h.Reason, Since: metav1.NewTime(now.Truncate(time.Second)), Token: h.Token, Count: int32(len(h.Backends)),
		Backends: slices.Clone(h.Backends[:min(len(h.Backends), maxHeldBackends)]),
	}
	if last != nil && last.Reason == h.Reason {
		s.Since = last.Since
	}
	return s
}

func minBackends(spec v1alpha1.HashRingSpec) int {
	if spec.Membership.MinBackends == 0 {
		return DefaultMinBackends
	}
	return int(spec.Membership.MinBackends)
}

func percentOr(text, byDefault string) string {
	if text == "" {
		return byDefault
	}
	return text
}

// parsePercent returns millionths of a percentage from 0% to 100% with at most 4 decimals.
func parsePercent(field, text, byDefault string) (uint32, error) {
	number, percent := strings.CutSuffix(percentOr(text, byDefault), "%")
	whole, decimals, _ := strings.Cut(number, ".")
	if percent && len(decimals) <= imbalanceDigits {
		decimals += strings.Repeat("0", imbalanceDigits-len(decimals))
		if n, err := strconv.ParseUint(whole+decimals, 10, 32); err == nil && n <= million {
			return uint32(n), nil
		}
	}
	return 0, refusef(v1alpha1.ReasonInvalidSpec, "%s must be 0%% to 100%% with at most %d decimals; got %q", field, imbalanceDigits, text)
}
