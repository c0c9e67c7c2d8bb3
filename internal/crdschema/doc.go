// SPDX-License-Identifier: Apache-2.0

// Package crdschema does to a manifest what the API server does when it is created, without an API server: it refuses
// unknown fields, fills in the defaults of the CustomResourceDefinition, and checks its schema and its CEL rules.
//
// It runs the API server's own code over the generated CRD, in the API server's order, so that a manifest which passes
// here is accepted there and one that is refused is refused for the same reason, in the same words.
//
// What it cannot know is what only a cluster has: admission policies and webhooks, quotas, the object that exists already
// (rules that compare with it, such as that of an immutable field, are not evaluated), and another version of the CRD.
package crdschema
