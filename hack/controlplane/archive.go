// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

const (
	// defaultIndex is the index that setup-envtest uses unless told otherwise.
	defaultIndex = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"
	// probeTimeout is short: a machine that cannot reach the host must not wait for it each time.
	probeTimeout = 2 * time.Second
	// downloadTimeout ends a download that is slower than a build.
	downloadTimeout = 10 * time.Minute
)

// archiveSource downloads the published archives of envtest with setup-envtest, which
// verifies their checksums. All its errors but an interrupt mean that the next source
// is to be tried.
type archiveSource struct {
	pins  pins
	cache *cache
	prog  *progress
	index string
}

// find returns the directory of the cache entry, after a download if need be.
// An archive has all three programs, so all are kept.
func (a *archiveSource) find(ctx context.Context, _ []string) (string, error) {
	if err := probe(ctx, a.index); err != nil {
		return "", fmt.Errorf("%w: %w", errUnavailable, err)
	}
	all := []string{etcd, apiServer, kubectl}
	dir, err := a.cache.install(ctx, a.pins.archiveEntry(), all, false, a.download)
	if err != nil && ctx.Err() == nil {
		return "", fmt.Errorf("%w: %w", errUnavailable, err)
	}
	return dir, err
}

// download puts the named programs into dir.
func (a *archiveSource) download(ctx context.Context, dir string, names []string) error {
	module, err := writeModule(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()

	stop := a.prog.watch(func() string { return "downloading Kubernetes " + a.pins.minor + " with setup-envtest" })
	observe := func(string) bool { return false }
	out, err := goCommand(ctx, module, observe, "tool", "setup-envtest", "use", a.pins.minor+".x!",
		"--print=path", "--use-env=false", "--bin-dir", filepath.Join(dir, "download"), "--index", a.index)
	stop()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(string(bytes.TrimSpace(out)), name), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("unpacking the archive: %w", err)
		}
	}
	return nil
}

// probe reports whether the host of the index answers. It uses the proxy that the
// environment names, as setup-envtest does.
func probe(ctx context.Context, index string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, index, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		// The URL is long and the same each time; its host says enough.
		if inner := (*url.Error)(nil); errors.As(err, &inner) {
			err = inner.Err
		}
		return fmt.Errorf("asking %s: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s: %s", req.URL.Host, resp.Status)
	}
	return nil
}
