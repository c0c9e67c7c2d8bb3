// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// logTailLines is how much of each program's log the error of a failed start has.
const logTailLines = 15

// program is the shell script that envtest starts in place of a program. It records its
// process for the guard and then becomes the program. The order matters: the guard
// disarms first and looks for records second, so it either sees the record or the
// script sees that it came too late.
const program = `#!/bin/sh
echo $$ >'%[1]s/%[2]s.pid' && [ -e '%[1]s/armed' ] || exit 1
exec '%[3]s' "$@"
`

// environment returns an environment whose programs are guarded, with all files in the
// guard's directory.
func (g *guard) environment(opts Options) (*envtest.Environment, error) {
	etcd, err := g.wrap(opts.Assets, "etcd")
	if err != nil {
		return nil, err
	}
	apiServer, err := g.wrap(opts.Assets, "kube-apiserver")
	if err != nil {
		return nil, err
	}
	env := &envtest.Environment{
		CRDDirectoryPaths:        opts.CRDPaths,
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: startTimeout,
		UseExistingCluster:       new(bool), // Whatever the environment variable of that name says.
	}
	env.ControlPlane.Etcd = &envtest.Etcd{Path: etcd.script, DataDir: etcd.dir, Out: etcd.log, Err: etcd.log}
	env.ControlPlane.APIServer = &envtest.APIServer{Path: apiServer.script, CertDir: apiServer.dir, Out: apiServer.log, Err: apiServer.log}
	env.ControlPlane.APIServer.Configure().Set("authorization-mode", "RBAC")
	return env, nil
}

// wrapped is what a guarded program has: a script to start, a directory and a log.
type wrapped struct {
	script string
	dir    string
	log    *os.File
}

// wrap prepares the named program of the directory assets.
func (g *guard) wrap(assets, name string) (wrapped, error) {
	w := wrapped{script: filepath.Join(g.dir, name), dir: filepath.Join(g.dir, name+".data")}
	path, err := filepath.Abs(filepath.Join(assets, name))
	if err != nil {
		return w, err
	}
	if strings.ContainsRune(path+g.dir, '\'') {
		return w, fmt.Errorf("a quote in the path %s or %s", path, g.dir)
	}
	if err := os.WriteFile(w.script, fmt.Appendf(nil, program, g.dir, name, path), 0o700); err != nil {
		return w, err
	}
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		return w, err
	}
	w.log, err = os.Create(g.logPath(name))
	g.logs = append(g.logs, w.log)
	return w, err
}

func (g *guard) logPath(name string) string {
	return filepath.Join(g.dir, name+".log")
}

// logTails returns the last lines of the programs' logs, each after its name.
func (g *guard) logTails() string {
	var out strings.Builder
	for _, log := range g.logs {
		data, err := os.ReadFile(log.Name())
		if err != nil || len(data) == 0 {
			continue // It was removed, or the program has not started.
		}
		lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
		lines = lines[max(0, len(lines)-logTailLines):]
		fmt.Fprintf(&out, "\n--- %s:\n%s", filepath.Base(log.Name()), bytes.Join(lines, []byte("\n")))
	}
	return out.String()
}

// closeLogs closes the logs in this process. The programs have their own ends by the
// time that the environment's Start has returned; before, it may yet start one.
func (g *guard) closeLogs() error {
	var errs []error
	for _, log := range g.logs {
		errs = append(errs, log.Close())
	}
	return errors.Join(errs...)
}
