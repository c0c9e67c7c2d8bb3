// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/materialize"
)

// follower does what kubelet does for a pod that mounts the three ConfigMaps: it writes them into a directory, now and
// after every change.
type follower struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (f *follower) stop() {
	f.cancel()
	<-f.done
}

// mountFiles writes what a pod would find.
func mountFiles(ctx context.Context, c client.Reader, ring, dir string) error {
	files := map[string][]byte{}
	for _, part := range []string{"a", "b", "routing"} {
		cm := &corev1.ConfigMap{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ring + "-" + part}, cm); err != nil {
			return err
		}
		maps.Copy(files, cm.BinaryData)
		for name, text := range cm.Data {
			files[name] = []byte(text)
		}
	}
	return materialize.Write(dir, files)
}

// follow mounts a ring and keeps the mount current until the demo ends.
func (d *demo) follow(ctx context.Context, c client.WithWatch, ring, dir string) error {
	if err := mountFiles(ctx, c, ring, dir); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{cancel: cancel, done: make(chan struct{})}
	d.followers = append(d.followers, f)
	go func() {
		defer close(f.done)
		// The API server ends every watch after a while, so there is always a next one.
		for ctx.Err() == nil {
			if err := followOnce(ctx, c, ring, dir); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "the mounted files stay as they are:", err) // As with kubelet.
				pause(ctx, time.Second)
			}
		}
	}()
	return nil
}

// followOnce mounts what is there and then after every change, until the watch ends.
func followOnce(ctx context.Context, c client.WithWatch, ring, dir string) error {
	watcher, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelRing: ring})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for {
		if err := mountFiles(ctx, c, ring, dir); err != nil {
			return err
		}
		if _, ok := <-watcher.ResultChan(); !ok {
			return nil
		}
	}
}

// pause waits, but not beyond the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// startAgent mounts the ring's ConfigMaps into a directory and starts the agent on it.
func (d *demo) startAgent(ctx context.Context) error {
	say("Mounting the ConfigMaps of " + d.ringName + " as kubelet does, and starting the agent beside them")
	c, err := d.client()
	if err != nil {
		return err
	}
	if err := d.follow(ctx, c, d.ringName, d.path("mount")); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.path("mount"))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		target, _ := os.Readlink(d.path("mount", entry.Name())) // Empty for what is no link.
		fmt.Printf("  %-14s %s\n", entry.Name(), target)
	}
	listen, err := freeAddress()
	if err != nil {
		return err
	}
	d.agentURL = "http://" + listen
	p, err := d.startProcess("agent", "--dir="+d.path("mount"), "--listen="+listen)
	if err != nil {
		return err
	}
	return p.waitReady(ctx, d.agentURL+"/readyz")
}

// answer is what the demo reads of the agent's answers.
type answer struct {
	Generation int64 `json:"generation"`
	Owners     []struct {
		ID      string `json:"id"`
		Address string `json:"address"`
	} `json:"owners"`
}

func (d *demo) lookup(ctx context.Context, key, features string) (answer, error) {
	query := url.Values{"key": {key}, "n": {"2"}}
	if features != "" {
		query.Set("features", features)
	}
	var a answer
	err := get(ctx, d.agentURL+"/v1/lookup?"+query.Encode(), func(r *http.Response) error {
		return json.NewDecoder(r.Body).Decode(&a)
	})
	if err == nil && len(a.Owners) == 0 {
		err = fmt.Errorf("key %q has no owner", key)
	}
	return a, err
}

// shownKeys are looked up in the demo.
var shownKeys = []string{"/index.html", "/logo.svg", "/video/42.mp4", "user:1001"}

// showLookups asks the agent and the command line for the same keys; they must agree.
func (d *demo) showLookups(ctx context.Context) error {
	say("Looking keys up: the agent over HTTP, and kubectl hashring from the same directory")
	args := append([]string{"lookup", "--dir", d.path("mount"), "--owners", "2", "-o", "tsv"}, shownKeys...)
	cmd := exec.CommandContext(ctx, d.path("bin", "kubectl-hashring"), args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("kubectl-hashring %s: %w", strings.Join(args, " "), err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(shownKeys) {
		return fmt.Errorf("kubectl-hashring answered %d of %d keys", len(lines), len(shownKeys))
	}
	for i, key := range shownKeys {
		a, err := d.lookup(ctx, key, "")
		if err != nil {
			return err
		}
		if fields := strings.Split(lines[i], "\t"); fields[0] != key || fields[1] != a.Owners[0].Address {
			return fmt.Errorf("key %q: the agent says %s, kubectl-hashring %q", key, a.Owners[0].Address, lines[i])
		}
		fmt.Printf("  %-16s %-24s then %s\n", key, a.Owners[0].Address, a.Owners[1].Address)
	}
	return nil
}

// showChange drains the owner of a key and shows that the agent follows and that the next one in line takes the key.
func (d *demo) showChange(ctx context.Context) error {
	key := shownKeys[0]
	before, err := d.lookup(ctx, key, "")
	if err != nil {
		return err
	}
	say("Draining " + before.Owners[0].Address + ", the owner of " + key)
	if err := d.drain(ctx, before.Owners[0].Address); err != nil {
		return err
	}
	if err := d.waitPublished(ctx, d.ringName); err != nil {
		return err
	}
	return waitFor(ctx, "the agent to follow", func(ctx context.Context) error {
		after, err := d.lookup(ctx, key, "")
		switch {
		case err != nil:
			return err
		case after.Generation <= before.Generation:
			return fmt.Errorf("the agent is at generation %d", after.Generation)
		case after.Owners[0].Address != before.Owners[1].Address:
			return &finalError{fmt.Errorf("the key went to %s, not to the next in line %s", after.Owners[0].Address, before.Owners[1].Address)}
		}
		fmt.Printf("  %-16s %-24s as announced above, generation %d\n", key, after.Owners[0].Address, after.Generation)
		return nil
	})
}

// drain sets the weight of a backend to 0, as one would with kubectl edit.
func (d *demo) drain(ctx context.Context, address string) error {
	c, err := d.client()
	if err != nil {
		return err
	}
	ring := &v1alpha1.HashRing{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: d.ringName}, ring); err != nil {
		return err
	}
	for i := range ring.Spec.Backends {
		b := &ring.Spec.Backends[i]
		if b.Port != nil && net.JoinHostPort(b.Address, strconv.Itoa(int(*b.Port))) == address {
			b.Weight = new(int32)
			return c.Update(ctx, ring, client.FieldOwner("kubectl-edit"))
		}
	}
	return fmt.Errorf("HashRing %s has no backend %s", d.ringName, address)
}
