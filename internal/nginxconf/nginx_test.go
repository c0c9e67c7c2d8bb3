// SPDX-License-Identifier: Apache-2.0

package nginxconf_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ringwright/ringwright/internal/nginxconf"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// checkedKeys is how many keys are compared after each change, a fifth of them in the view as well.
const checkedKeys = 1000

// TestNGINXFollows runs NGINX with the rendered file. It changes the ring, who is down, and the ring of a view, under
// requests, and compares after each change who answers with whom the client picks. No request may fail meanwhile.
func TestNGINXFollows(t *testing.T) {
	binary := findNGINX(t)
	dir := t.TempDir()
	work := shortTempDir(t)
	servers := startServers(t, 12)
	config := nginxconf.Config{
		Output: filepath.Join(work, "ring.conf"), Hash: "$arg_k", Features: []string{"eu"},
		PIDFile: filepath.Join(work, "nginx.pid"), MinInterval: nginxconf.MinInterval,
		TestCommand: binary + " -p " + work + " -c " + filepath.Join(work, "nginx.conf") + " -t -q",
	}
	write(t, filepath.Join(work, "nginx.conf"), nginxMain(work))
	ringOf := func(identity ring.Identity, servers []string) *ring.Ring {
		c := configOf(identity, servers...)
		c.Features = []string{"eu"}
		for i := range c.Backends {
			if i%2 == 0 {
				c.Backends[i].Features = []string{"eu"}
			}
		}
		return build(t, c)
	}
	publish(t, dir, 1, ringOf(ring.IdentityNGINX, servers[:8]), nil, 0)
	client, renderer := start(t, dir, config)
	eventually(t, "the file", func() bool { return read(config.Output) != "" })
	startNGINX(t, binary, work)
	front := newFront(work)
	eventually(t, "NGINX is told", func() bool { return len(renderer.Warnings()) == 0 })
	compare(t, work, client)

	load := startLoad(t, front)
	changes := []struct {
		name      string
		ring      *ring.Ring
		candidate *ring.Ring
		down      []string
	}{
		{"more backends", ringOf(ring.IdentityNGINX, servers), nil, nil},
		{"two are down", ringOf(ring.IdentityNGINX, servers), nil, []string{servers[3], servers[7]}},
		{"all of a view but one are down", ringOf(ring.IdentityNGINX, servers), nil, []string{servers[0], servers[2], servers[4], servers[6], servers[8]}},
		{"the identity is Address", ringOf(ring.IdentityAddress, servers[2:]), nil, []string{servers[5]}},
		{"all keys go to the candidate", ringOf(ring.IdentityAddress, servers[2:]), ringOf(ring.IdentityNGINX, servers[4:]), nil},
	}
	for i, change := range changes {
		generation := int64(2 + i)
		publish(t, dir, generation, change.ring, change.candidate, 10000, change.down...)
		eventually(t, change.name, func() bool {
			return client.State().Generation() == generation && strings.Contains(read(config.Output), fmt.Sprintf("generation %d,", generation))
		})
		eventually(t, change.name+": NGINX is told", func() bool { return renderer.NotApplied() == "" })
		// Old workers end what they have begun with the old ring, so NGINX is asked until it has turned.
		eventually(t, change.name+": NGINX", func() bool { return mismatches(t, front, client, checkedKeys) == 0 })
		compare(t, work, client)
	}
	load.end(t)
}

// compare asks NGINX for keys in the ring and in the view, and compares who answers with whom the client picks.
func compare(t *testing.T, work string, client *ringclient.Client) {
	t.Helper()
	front := newKeptFront(work)
	defer front.CloseIdleConnections()
	if n := mismatches(t, front, client, checkedKeys); n > 0 {
		t.Fatalf("%d of %d keys have another backend in NGINX", n, checkedKeys)
	}
}

// mismatches returns how many of n keys, in the ring or in the view, NGINX sends to another backend than the client.
func mismatches(t *testing.T, front *http.Client, client *ringclient.Client, n int) int {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(4)
	var count atomic.Int64
	for i := range n {
		group.Go(func() error {
			for path, features := range map[string][]string{"all": nil, "eu": {"eu"}} {
				if path == "eu" && i%5 != 0 {
					continue
				}
				key := fmt.Sprintf("key-%d", i)
				want, err := client.Pick([]byte(key), features...)
				if err != nil {
					return err
				}
				got, err := ask(front, path, key)
				if err != nil {
					return err
				}
				if got != want.ID() {
					count.Add(1)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return int(count.Load())
}

// ask returns which server answers for a key.
func ask(front *http.Client, path, key string) (string, error) {
	response, err := front.Get("http://nginx/" + path + "?k=" + key)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

// load sends requests until it is ended.
type load struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup
	sent   atomic.Int64
	mu     sync.Mutex
	failed []error
}

func startLoad(t *testing.T, front *http.Client) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel}
	for worker := range 2 {
		l.ended.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := ask(front, "all", fmt.Sprintf("load-%d-%d", worker, i)); err != nil {
					l.mu.Lock()
					l.failed = append(l.failed, err)
					l.mu.Unlock()
				}
				l.sent.Add(1)
			}
		})
	}
	return l
}

func (l *load) end(t *testing.T) {
	t.Helper()
	l.cancel()
	l.ended.Wait()
	if len(l.failed) > 0 || l.sent.Load() < 100 {
		t.Errorf("%d of %d requests failed: %v", len(l.failed), l.sent.Load(), errors.Join(l.failed...))
	}
}

// startServers starts servers that answer with their address, which is how the ring knows them.
func startServers(t *testing.T, n int) []string {
	t.Helper()
	list := make([]string, n)
	for i := range list {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, list[i]) }))
		t.Cleanup(s.Close)
		address, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		list[i] = address.Host
	}
	return list
}

// newFront returns a client whose every request is a connection of its own to NGINX, so that none goes to an old worker.
func newFront(work string) *http.Client {
	client := newKeptFront(work)
	client.Transport.(*http.Transport).DisableKeepAlives = true
	return client
}

// newKeptFront returns a client that keeps its connections, and with them the workers of NGINX that it began with.
func newKeptFront(work string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(work, "front"))
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 8}, Timeout: 30 * time.Second}
}

func nginxMain(work string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "daemon off;\nworker_processes 2;\npid %s/nginx.pid;\nerror_log stderr warn;\nevents {}\nhttp {\naccess_log off;\n", work)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&b, "%s_temp_path %s/%s;\n", kind, work, kind)
	}
	fmt.Fprintf(&b, "include %s/ring.conf;\nserver { listen unix:%s/front;\n", work, work)
	b.WriteString("location = /all { proxy_pass http://ring; }\nlocation = /eu { proxy_pass http://ring.eu; }\n}\n}\n")
	return b.String()
}

// startNGINX runs NGINX until the test ends.
func startNGINX(t *testing.T, binary, work string) {
	t.Helper()
	// The shell ends NGINX when its input does, which the kernel sees to even where the test is killed.
	command := exec.Command("/bin/sh", "-c", `"$0" -p "$1" -c "$1/nginx.conf" & read -r _; kill $!; wait`, binary, work)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(input.Close(), command.Wait()); err != nil {
			t.Errorf("ending NGINX: %v", err)
		}
		if t.Failed() {
			t.Logf("NGINX wrote:\n%s", &output)
		}
	})
	eventually(t, "NGINX listens", func() bool {
		conn, err := net.Dial("unix", filepath.Join(work, "front"))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// shortTempDir returns a directory in which the path of a socket is not too long, and which NGINX's workers may enter.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rw-nginx-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// findNGINX returns the path of NGINX. Without it the test is skipped, in CI it fails.
func findNGINX(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil && runtime.GOOS == "linux" {
			return path
		}
	}
	const advice = "this test runs NGINX on Linux, which is not installed: apt-get install nginx-light"
	if os.Getenv("CI") != "" {
		t.Fatal(advice)
	}
	t.Skip(advice)
	return ""
}
