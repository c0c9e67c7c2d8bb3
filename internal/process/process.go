// SPDX-License-Identifier: Apache-2.0

// Package process is what the programs that run in a cluster have in common: flags for logs, where they run, and how they find the API server.
package process

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Flags are those that the programs share.
type Flags struct{ kubeconfig, logLevel, logFormat string }

// Add defines them.
func (f *Flags) Add(set *pflag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file; without it, $KUBECONFIG or the service account of the pod")
	set.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	set.StringVar(&f.logFormat, "log-format", "json", "json or text")
}

// Cluster returns how to reach the API server. Requests are not limited here: client-go's own limit, 5 a second, is less than the writes
// of one ring. What bounds those that are on their way is how much the program does at a time, and the API server's priority and fairness.
func (f *Flags) Cluster() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	cfg.QPS = -1
	return cfg, nil
}

// SetUpLogs sends the logs of the program and of its libraries to one place in one form.
func (f *Flags) SetUpLogs() error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return fmt.Errorf("--log-level: %q is not debug, info, warn or error", f.logLevel)
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler
	switch f.logFormat {
	case "json":
		handler = slog.NewJSONHandler(os.Stderr, options)
	case "text":
		handler = slog.NewTextHandler(os.Stderr, options)
	default:
		return fmt.Errorf("--log-format: %q is not json or text", f.logFormat)
	}
	logger := logr.FromSlogHandler(handler)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return nil
}

// PodNamespace returns the namespace that the program runs in, "" where it runs in none.
func PodNamespace() string {
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(namespace))
}
