// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// measured is what a rollout is judged by.
type measured struct {
	// maxOverAverage is NaN where nothing was measured.
	maxOverAverage float64
	// requests and errors are those of all endpoints since the last update, 0 where they are not reported.
	requests, errors float64
	// updated says that weights were computed.
	updated bool
}

// advanceRollout returns where a rollout is at now, from where it was and what was measured. It begins anew when spec.strategy or
// spec.rollout changes. The spec is one that the schema admits.
func advanceRollout(policy *v1alpha1.WeightPolicy, before *v1alpha1.RolloutStatus, m measured, now time.Time) v1alpha1.RolloutStatus {
	spec := policy.Spec.Rollout
	digest := rolloutDigest(&policy.Spec)
	s := v1alpha1.RolloutStatus{Digest: digest, Since: metav1.NewTime(now), Generation: policy.Generation}
	if before != nil && before.Digest == digest {
		s = *before.DeepCopy()
		s.Step = max(s.Step, 0)
		if s.Aborted == "" {
			judge(&s, spec.Abort, m, now)
		}
		if s.Aborted == "" && s.BadSince == nil && int(s.Step) < len(spec.Steps) && m.updated && now.Sub(s.Since.Time) >= spec.Steps[s.Step].Duration.Duration {
			s.Step, s.Since = s.Step+1, metav1.NewTime(now)
		}
	}
	s.Percent = fmt.Sprintf("%d%%", percentOf(spec, s))
	return s
}

// percentOf returns the part of the new strategy in a step.
func percentOf(spec v1alpha1.WeightRollout, s v1alpha1.RolloutStatus) int32 {
	switch {
	case s.Aborted != "":
		return 0
	case s.Step >= 0 && int(s.Step) < len(spec.Steps):
		return spec.Steps[s.Step].Percent
	default:
		return ptr.Deref(spec.Percent, 100)
	}
}

// judge notes whether abort is met, and aborts once it has been for long enough. Without a measurement nothing changes.
func judge(s *v1alpha1.RolloutStatus, abort *v1alpha1.RolloutAbort, m measured, now time.Time) {
	if abort == nil || !m.updated {
		return
	}
	why := met(abort, m)
	if why == "" {
		s.BadSince = nil
		return
	}
	if s.BadSince == nil {
		s.BadSince = ptr.To(metav1.NewTime(now))
	}
	if wanted := ptr.Deref(abort.For, metav1.Duration{Duration: time.Minute}).Duration; now.Sub(s.BadSince.Time) >= wanted {
		s.Aborted, s.Since, s.BadSince = fmt.Sprintf("%s for %v, at %s", why, wanted, s.Percent), metav1.NewTime(now), nil
	}
}

// met says which part of abort is met, "" for none.
func met(abort *v1alpha1.RolloutAbort, m measured) string {
	d := decimals{}
	if limit := abort.MaxOverAverage; limit != "" && !math.IsNaN(m.maxOverAverage) && m.maxOverAverage >= d.number("rollout.abort.maxOverAverage", limit) {
		return fmt.Sprintf("maxOverAverage is %.3f, abort is at %s", m.maxOverAverage, limit)
	}
	if limit := abort.ErrorRatio; limit != "" && m.requests > 0 && m.errors/m.requests >= d.percentage("rollout.abort.errorRatio", limit) {
		return fmt.Sprintf("%.2f%% of the requests fail, abort is at %s", 100*m.errors/m.requests, limit)
	}
	return ""
}

// rolloutDigest tells the parts of a spec that begin a rollout from others.
func rolloutDigest(spec *v1alpha1.WeightPolicySpec) string {
	text, err := json.Marshal([]any{spec.Strategy, spec.Rollout})
	if err != nil {
		panic(err) // Neither has a type that cannot be encoded.
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
