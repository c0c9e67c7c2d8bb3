// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestMain makes the tests' program the init of the nodes that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == initCommand {
		os.Exit(initMain())
	}
	os.Exit(m.Run())
}

// needNode skips a test that starts a node, but with E2E=1: a machine has one node, which nobody else may be using. Then it fails where one
// cannot be started or would take a long build first.
func needNode(t *testing.T) layout {
	t.Helper()
	l, err := newLayout()
	if err != nil {
		t.Fatal(err)
	}
	var reason string
	switch {
	case checkMachine(l) != nil:
		reason = checkMachine(l).Error()
	case !programsBuilt(l):
		reason = "the programs of Kubernetes are not built: go -C hack/node run . build"
	}
	if _, err := l.initPID(); err == nil {
		reason = "a node is up already, and this test would end it: make node-down"
	}
	switch {
	case os.Getenv("E2E") != "1":
		t.Skip("NO NODE HAS BEEN STARTED: E2E=1 does")
	case reason != "":
		t.Fatal(reason)
	}
	t.Cleanup(func() { // After a failure half-way.
		if err := runDown(context.Background(), l, nil, io.Discard); err != nil {
			t.Error(err)
		}
	})
	return l
}

// must runs a command line that succeeds, and returns what it prints.
func must(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), args, &stdout, &stderr); code != 0 {
		t.Fatalf("%q: exit code %d: %s", args, code, stderr.String())
	}
	return strings.TrimSpace(stdout.String())
}

// machine is what a node must leave as it was.
type machine struct{ links, routes, mounts, cgroups, lib string }

func readMachine(t *testing.T) machine {
	t.Helper()
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	list := func(pattern string) string {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(names, "\n")
	}
	m := machine{
		links: list("/sys/class/net/*"), routes: read("/proc/net/route"),
		mounts: read("/proc/self/mountinfo"), lib: list("/var/lib/[ck]*"),
	}
	hierarchies, err := hierarchiesOfSelf()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hierarchies {
		m.cgroups += list(h.child())
	}
	return m
}

func TestNode(t *testing.T) {
	l := needNode(t)
	before := readMachine(t)
	path := must(t, "up")
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := l.initPID()
	if err != nil {
		t.Fatal(err)
	}
	if again := must(t, "up"); again != path {
		t.Errorf("up when it is up prints %q, want %q", again, path)
	}
	if now, err := l.initPID(); now != pid || err != nil {
		t.Errorf("up when it is up has started process %d, %v", now, err)
	}
	if got := must(t, "status"); !strings.HasPrefix(got, "ready\n") {
		t.Errorf("status is %q", got)
	}
	if got := must(t, "enter", "hostname"); got != nodeName {
		t.Errorf("the node's host name is %q", got)
	}
	const tag = "localhost/ringwright-test:1"
	archive := filepath.Join(t.TempDir(), "image.tar")
	if err := writeImage(archive, image{tag: tag, user: "65532:65532", programs: []string{filepath.Join(programsDir(l), "pause")}}); err != nil {
		t.Fatal(err)
	}
	must(t, "load", archive)
	runPod(t, client, tag)

	must(t, "down")
	if _, err := l.initPID(); !errors.Is(err, errDown) {
		t.Errorf("after down: %v", err)
	}
	if after := readMachine(t); after != before {
		t.Errorf("down has left\n%+v\nof\n%+v", after, before)
	}
	must(t, "down") // Nothing to do is no error.
}

// runPod runs a pod of the image until it is ready, and deletes it.
func runPod(t *testing.T, client kubernetes.Interface, image string) {
	t.Helper()
	pods := client.CoreV1().Pods("default")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "test"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "pause", Image: image, ImagePullPolicy: corev1.PullNever,
		}}},
	}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var last *corev1.Pod
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = pods.Get(ctx, "test", metav1.GetOptions{})
		return err == nil && last.Status.Phase == corev1.PodRunning && last.Status.PodIP != "", err
	})
	if err != nil {
		t.Fatalf("the pod does not run: %v: %+v", err, last.Status)
	}
}

// A node whose init died, with an up that never got to the end, is cleared away by down and by the next up.
func TestNodeAfterDeath(t *testing.T) {
	l := needNode(t)
	before := readMachine(t)
	for _, next := range []string{"up", "down"} {
		must(t, "up")
		pid, err := l.initPID()
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for startTime(pid) != "" { // It ends when all below it have.
			runtime.Gosched()
		}
		must(t, next)
	}
	if after := readMachine(t); after != before {
		t.Errorf("down has left\n%+v\nof\n%+v", after, before)
	}
}
