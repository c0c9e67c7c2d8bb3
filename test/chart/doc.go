// SPDX-License-Identifier: Apache-2.0

// Package chart holds the Helm chart in dist/chart to what kustomize makes of config, and installs it on a real API server. It is a module
// of its own, so that nothing else depends on helm.sh/helm.
package chart
