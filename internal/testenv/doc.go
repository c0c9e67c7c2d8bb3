// SPDX-License-Identifier: Apache-2.0

// Package testenv starts a real Kubernetes API server, with etcd, on the loopback
// interface: for envtest suites and for the demo.
//
//	cp, err := testenv.Start(ctx, testenv.Options{})
//	if err != nil { … }
//	defer cp.Stop()
//	namespace, err := cp.CreateNamespace(ctx, "rings-")
//
// The programs come from the directory that KUBEBUILDER_ASSETS names, or else from
// hack/controlplane of the module that the working directory is in. The latter may
// build them, which takes minutes once; go test has a timeout of its own, so run
// hack/controlplane before the tests, as the Makefile does.
//
// Guarantees: RBAC decides all requests but those of the admin; the CRDs of config/crd/bases are
// installed and established; nothing is left, neither a process nor a file, when Stop
// returns, when the context of Start ends, or when this process ends in any way,
// be it a panic, an interrupt or a kill.
//
// Not guaranteed, as there are no controllers and no kubelet: deletion of a
// namespace never completes, owner references do not collect garbage, a pod
// never runs, a namespace has no default service account, and aggregated
// cluster roles such as view stay empty.
//
// A start takes about five seconds. Each test package that imports this one links a
// large program: have few of them, with one control plane each.
package testenv
