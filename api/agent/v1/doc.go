// SPDX-License-Identifier: Apache-2.0

// Package agentv1 is what an agent answers over gRPC, generated from lookup.proto. Field numbers never change their meaning; what
// answers get in addition, old clients pass over.
package agentv1
