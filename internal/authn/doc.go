// SPDX-License-Identifier: Apache-2.0

// Package authn says who calls, by the token of a Kubernetes service account that the API server reviews. What is not authenticated does not
// pass, whatever fails.
package authn
