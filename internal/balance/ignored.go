// SPDX-License-Identifier: Apache-2.0

package balance

// Evidence is how load followed published weights lately: endpoints are watched from when their error is large until their
// published weight has moved enough to see whether their load did too.
type Evidence struct {
	// Sum and Count are the responses that were seen, 1 for load that moved as the weight did and 0 for load that did not, both
	// fading with every update.
	Sum, Count float64
	// Ignored is the verdict, which stays until there is evidence of the contrary.
	Ignored bool
}

// probe is an endpoint's open question: what its load and published weight, as logarithms, and its error were when it began.
type probe struct {
	open                bool
	load, weight, error float64
}
