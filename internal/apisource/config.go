// SPDX-License-Identifier: Apache-2.0

package apisource

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ringwright/ringwright/pkg/routing"
)

// Config says which HashRing is followed, and where its files go.
type Config struct {
	// HashRing is its namespace and name, "cdn/edge-cache". Required.
	HashRing string
	// Kubeconfig is the path of a kubeconfig file; "" is the service account of the pod.
	Kubeconfig string
	// Dir is the directory that is written. It is created where needed, and nobody else may write to it. Required.
	Dir string
	// Logger receives what happens; nil logs nothing.
	Logger *slog.Logger
}

// AddFlags defines --hashring and --kubeconfig. Dir is a flag of the agent whatever the source is.
func (c *Config) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.HashRing, "hashring", c.HashRing,
		"with --source=api: NAMESPACE/NAME of the HashRing whose ConfigMaps are written into --dir")
	flags.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig,
		"with --source=api: kubeconfig file; without it, the service account of the pod is used")
}

// Check says what of the configuration cannot be used.
func (c Config) Check() error {
	switch err := routing.CheckRingName(c.HashRing); {
	case c.HashRing == "":
		return errors.New("--hashring is missing: with --source=api it is the NAMESPACE/NAME of the HashRing")
	case err != nil:
		return fmt.Errorf("--hashring is %w", err)
	case c.Dir == "":
		return errors.New("--dir is missing: with --source=api it is the directory that the files are written to")
	}
	return nil
}

// New returns a source that has not started. It fails where the configuration cannot be used, not where the API server cannot
// be reached.
func New(config Config) (*Source, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	find := rest.InClusterConfig
	if config.Kubeconfig != "" {
		find = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", config.Kubeconfig) }
	}
	cluster, err := find()
	if err != nil {
		return nil, fmt.Errorf("--source=api: finding the API server: %w", err)
	}
	return NewFor(config, cluster)
}

// NewFor is [New] with a given API server in place of config.Kubeconfig.
func NewFor(config Config, cluster *rest.Config) (*Source, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	client, err := newClient(cluster)
	if err == nil { // A reader can watch a directory only once it is there.
		err = os.MkdirAll(config.Dir, 0o755)
	}
	if err == nil {
		err = checkDirectory(config.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("--source=api: %w", err)
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return newSource(config, client), nil
}

// checkDirectory refuses a directory that was not written as volumes are, by links: its files would stay where they are.
func checkDirectory(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		ours := name == "..data" || name == routing.FileName || strings.HasPrefix(name, "ring-")
		if ours && entry.Type()&fs.ModeSymlink == 0 {
			return fmt.Errorf("--dir is %s, which holds %s that is no link: somebody else wrote it; give an empty directory", dir, name)
		}
	}
	return nil
}

// newClient returns a client that knows ConfigMaps and nothing else: the typed client of all groups would more than double the
// agent.
func newClient(cluster *rest.Config) (rest.Interface, error) {
	version := corev1.SchemeGroupVersion
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(version, &corev1.ConfigMap{}, &corev1.ConfigMapList{})
	metav1.AddToGroupVersion(scheme, version)
	config := rest.CopyConfig(cluster)
	config.APIPath = "/api"
	config.GroupVersion = &version
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	// JSON would carry a snapshot in base64, a third larger.
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.QPS, config.Burst = 20, 2*maxWatches
	if config.UserAgent == "" {
		config.UserAgent = "ringwright-agent"
	}
	return rest.RESTClientFor(config)
}
