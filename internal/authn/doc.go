// SPDX-License-Identifier: Apache-2.0

// Package authn says who calls, by the token of a Kubernetes service account that the API server reviews (TokenReview).
//
// What it guarantees:
//
//   - a call without a token, or whose token is not valid for the audience, does not pass, whatever fails;
//   - no token is kept: answers are known by its SHA-256;
//   - an answer that is yes counts for Options.PositiveTTL, one that is no for Options.NegativeTTL, neither past the token's expiry;
//   - while the API server cannot be asked, or is asked too much, one that was yes counts for Options.Grace, and nobody new passes. So a token
//     that is revoked meanwhile passes that long, until it expires;
//   - memory, reviews at a time and calls that wait for one have limits, whatever callers send. Bad tokens push no good ones out.
package authn
