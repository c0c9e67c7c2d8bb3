// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// upOptions are the flags of up.
type upOptions struct {
	syncFrequency time.Duration
	kubeletConfig string
	timeout       time.Duration
}

func parseUp(args []string) (upOptions, error) {
	o := upOptions{}
	fs := flag.NewFlagSet("up", flag.ContinueOnError)
	fs.DurationVar(&o.syncFrequency, "sync-frequency", 0,
		"how often the kubelet looks at the volumes of a pod, such as 10s (default the kubelet's own, 1m)")
	fs.StringVar(&o.kubeletConfig, "kubelet-config", "",
		"a `FILE` with a KubeletConfiguration whose fields replace those of the node's")
	fs.DurationVar(&o.timeout, "timeout", 3*time.Minute, "how long the node may take to be ready, without the building of programs")
	if err := parse(fs, args); err != nil {
		return o, err
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("up: unexpected argument %q", fs.Arg(0))
	case o.syncFrequency < 0:
		return o, fmt.Errorf("-sync-frequency is %s and must not be negative", o.syncFrequency)
	case o.timeout <= 0:
		return o, fmt.Errorf("-timeout is %s and must be above 0", o.timeout)
	}
	return o, nil
}

// runUp starts the node and prints the path of its kubeconfig.
func runUp(ctx context.Context, l layout, args []string, stdout io.Writer) error {
	o, err := parseUp(args)
	if err != nil {
		return err
	}
	if err := checkMachine(l); err != nil {
		return err
	}
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if pid, err := l.initPID(); err == nil {
		note("the node is up already, as process %d, with the flags that it was started with", pid)
		if err := l.waitReady(ctx, pid, o.timeout); err != nil { // The up that started it may have been killed.
			return fmt.Errorf("%w (down ends it)", err)
		}
		return printLine(stdout, l.kubeconfig())
	}
	s, err := prepare(ctx, l)
	if err != nil {
		return err
	}
	s.SyncFrequency = o.syncFrequency
	began := time.Now()
	if err := start(ctx, l, s, o); err != nil {
		return errors.Join(err, l.tails(), l.clear())
	}
	note("ready after %s", time.Since(began).Round(10*time.Millisecond))
	return printLine(stdout, l.kubeconfig())
}

func printLine(w io.Writer, line string) error {
	_, err := fmt.Fprintln(w, line)
	return err
}

// prepare finds everything that the node is made of. It takes long if Kubernetes is to be built.
func prepare(ctx context.Context, l layout) (spec, error) {
	s := spec{State: l.state(), Logs: filepath.Dir(l.log("")), CNI: cniPlugins}
	var err error
	if s.Hierarchies, err = hierarchiesOfSelf(); err != nil {
		return s, err
	}
	if s.Containerd, err = findContainerd(ctx, l); err != nil {
		return s, err
	}
	if s.ControlPlane, err = findControlPlane(ctx); err != nil {
		return s, err
	}
	s.Programs, err = findPrograms(ctx, l)
	return s, err
}

// start starts the node and waits until it takes pods.
func start(ctx context.Context, l layout, s spec, o upOptions) error {
	if err := l.clear(); err != nil { // An earlier one may have died, or its up may have.
		return err
	}
	if err := checkRoutes(); err != nil { // Also where the node of another user is up, whose link is not ours to remove.
		return err
	}
	if err := l.writeState(&s, o); err != nil {
		return fmt.Errorf("writing the state of the node: %w", err)
	}
	pid, err := launch(l, s)
	if err != nil {
		return err
	}
	return l.waitReady(ctx, pid, o.timeout)
}

// waitReady waits until a node whose init is the process pid takes pods.
func (l layout) waitReady(ctx context.Context, pid int, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	alive := func() error {
		if startTime(pid) == "" {
			return errors.New("the node died")
		}
		return nil
	}
	started := func() error { _, err := os.Stat(l.state("started")); return err }
	if err := poll(ctx, alive, "the control plane", started); err != nil {
		return err
	}
	api, err := newAPI(l.kubeconfig())
	if err != nil {
		return err
	}
	return poll(ctx, alive, "the node", func() error { return api.ready(ctx) })
}

// writeState writes everything that is on disk before a node starts.
func (l layout) writeState(s *spec, o upOptions) error {
	for _, dir := range []string{s.Logs, s.State} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := l.makeOwnDirs(); err != nil {
		return err
	}
	if o.kubeletConfig != "" {
		data, err := os.ReadFile(o.kubeletConfig)
		if err != nil {
			return err
		}
		s.KubeletDropIn = s.file("kubelet.conf.d")
		if err := os.MkdirAll(s.KubeletDropIn, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.KubeletDropIn, "10-flag.conf"), data, 0o644); err != nil {
			return err
		}
	}
	authority, err := writePKI(s.pki(""), time.Now())
	if err != nil {
		return err
	}
	clients := map[string]string{
		"admin": "kubeconfig", "kubelet": "kubelet.kubeconfig", "proxy": "proxy.kubeconfig",
		"controller-manager": "controller-manager.kubeconfig", "scheduler": "scheduler.kubeconfig",
	}
	for id, file := range clients {
		if err := authority.writeKubeconfig(s.file(file), id); err != nil {
			return err
		}
	}
	if err := s.writeConfig(); err != nil {
		return err
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(s.file("spec.json"), data, 0o644)
}

// makeOwnDirs makes the directories that the node mounts over each other, and remembers which of them the machine lacked.
func (l layout) makeOwnDirs() error {
	var made []string
	for _, dir := range ownDirs {
		if err := os.MkdirAll(l.state("dirs"+dir), 0o755); err != nil {
			return err
		}
		err := os.Mkdir(dir, 0o755)
		switch {
		case err == nil:
			made = append(made, dir)
		case !errors.Is(err, fs.ErrExist):
			return err
		}
	}
	return os.WriteFile(l.state("made"), []byte(strings.Join(made, "\n")), 0o644)
}

// launch starts the node's init in its cgroups and namespaces, connects it, and lets it go.
func launch(l layout, s spec) (pid int, err error) {
	var dirs []string
	for _, h := range s.Hierarchies {
		dirs = append(dirs, h.child())
	}
	// Written first, so that down finds them whatever happens next.
	if err := os.WriteFile(l.state("cgroups"), []byte(strings.Join(dirs, "\n")), 0o644); err != nil {
		return 0, err
	}
	if err := createCgroups(s.Hierarchies); err != nil {
		return 0, err
	}
	log, err := os.Create(l.log("init"))
	if err != nil {
		return 0, err
	}
	defer log.Close() // The child has a copy.
	cmd := exec.Command("/proc/self/exe", initCommand)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, s.State
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID |
		syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWCGROUP}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	defer stdin.Close()
	if err := startInCgroups(cmd, s.Hierarchies); err != nil {
		return 0, err
	}
	pid = cmd.Process.Pid
	go func() { _ = cmd.Wait() }() // So that it is no zombie, which would look alive.
	if err := os.WriteFile(l.state("init"), []byte(fmt.Sprintf("%d\n%s", pid, startTime(pid))), 0o644); err != nil {
		return 0, err
	}
	if err := connectNode(pid); err != nil {
		return 0, err
	}
	_, err = io.WriteString(stdin, s.file("spec.json"))
	return pid, err
}

// startInCgroups enters the node's cgroups for the moment in which the child starts, as the root of the child's cgroup
// namespace is the cgroup that it starts in.
func startInCgroups(cmd *exec.Cmd, list []hierarchy) error {
	err := moveInto(list, os.Getpid(), hierarchy.child)
	if err == nil {
		err = cmd.Start()
	}
	return errors.Join(err, moveInto(list, os.Getpid(), func(h hierarchy) string { return h.Dir }))
}
