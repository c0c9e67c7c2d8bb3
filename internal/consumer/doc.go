// SPDX-License-Identifier: Apache-2.0

// Package consumer asks the pods that read rings what they have. It decides nothing: what an answer means is for package plan.
//
// A pod can only speak for itself, and is not trusted beyond that: an answer has a limit in bytes and in time, whatever of it is
// kept has one too, and the address that the cluster gives for the pod is the only one that is ever dialled, without proxies and
// redirects. Requests have a limit in number, together and for each HashRing, a lower one where its pods hang; what is kept of a
// pod is about a kilobyte at most.
//
// It asks a pod that is not current within 2 seconds of a publication and of coming, then less and less often, down to every 15
// seconds; one that is current, or cannot be reached for long, once within a minute, at times that spread over it. While there is a
// hurry, see [Poller.Hurry], one that is current is asked as often as one that is late.
//
// Counters in answers are kept beside what package plan judges, see [Poller.Samples]: they grow with each answer, and that is nothing to
// look at a ring for.
package consumer
