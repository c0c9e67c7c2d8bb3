// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// weightsDocs is the page whose sections are named after reasons.
const weightsDocs = "docs/weights.md"

// weightAdvice says what to do about the reason of a condition of a WeightPolicy; "" for those that are nothing to worry about.
var weightAdvice = map[v1alpha1.ConditionReason]string{
	v1alpha1.ReasonWeightsServed: "",
	v1alpha1.ReasonConverged:     "",
	v1alpha1.ReasonReportsFresh:  "",
	v1alpha1.ReasonBalancing:     "",

	v1alpha1.ReasonShadow:    "the rollout is at 0 %: predictedMaxOverAverage says what the weights are worth; raise spec.rollout.percent to serve them",
	v1alpha1.ReasonSuspended: "take spec.suspend away to let the weights follow the load again",
	v1alpha1.ReasonPinned:    "\"weights resume\" lets the weights follow the load again",

	v1alpha1.ReasonServiceNotFound:  "make the Service that spec.targetRef names; the last good weights are served until then",
	v1alpha1.ReasonPortNotFound:     "name a port of the Service in a policy that is made anew: spec.targetRef cannot be changed",
	v1alpha1.ReasonRingNotFound:     "make the HashRing that spec.targetRef names, or see why it has published no ring: \"kubectl hashring inspect\"",
	v1alpha1.ReasonNoEndpoints:      "see why the pods of the target are not ready; the last good weights are kept",
	v1alpha1.ReasonTargetTaken:      "delete one of the two policies: the older one is in force",
	v1alpha1.ReasonTooManyEndpoints: "split the target: a policy balances at most 100000 endpoints",
	v1alpha1.ReasonInvalidSpec:      "change the field that the message names",
	v1alpha1.ReasonNameConflict:     "delete the object that the message names, or publish under another name in spec.publish.configMap",
	v1alpha1.ReasonPublishFailed:    "see whether the API server answers and the balancer has its permissions; it is tried again",
	v1alpha1.ReasonRolloutAborted:   "find out what the new weights did, then change spec.rollout or spec.strategy to begin again",
	v1alpha1.ReasonRevisionNotFound: "pin the weights to a revision that \"weights history\" lists, or \"weights resume\"",

	v1alpha1.ReasonNoReports:   "see the sources below: whether pods push, xDS clients report, Prometheus answers, or metrics.k8s.io is there",
	v1alpha1.ReasonFewReports:  "find the endpoints that are Silent, and why they do not report; limits.minReporting says how many have to",
	v1alpha1.ReasonNotMeasured: "wait for the first reports; if it stays so, see the sources below",

	v1alpha1.ReasonConverging:     "wait a few updates; if it stays so, see condition Effective and the endpoints that are Clamped or Guarded",
	v1alpha1.ReasonLowTraffic:     "nothing: with so little load its differences are chance, and the weights stay",
	v1alpha1.ReasonClamped:        "widen limits.minWeight and limits.maxWeight, or take the endpoints out that differ so much",
	v1alpha1.ReasonWeightsIgnored: "see whether the clients use the weights: grpc-go needs an xDS target and round_robin or ring_hash, Envoy a weighted load balancer",
	v1alpha1.ReasonCoarseWeights:  "give the HashRing's backends weights as large as its warning CoarseWeights says",
}

// adviceFor returns what to do about a reason, and where that is explained.
func adviceFor(reason string) (advice, docs string) {
	advice = weightAdvice[v1alpha1.ConditionReason(reason)]
	if advice == "" {
		return "", ""
	}
	return advice, weightsDocs + "#" + strings.ToLower(reason)
}
