// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// process is a program that runs beside the demo.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan error
	log  *os.File
	// killed says that there is nothing left to stop.
	killed bool
}

// startProcess starts a program of bin/ with its output in a log file.
func (d *demo) startProcess(name string, args ...string) (*process, error) {
	return d.startProgram(name, d.path("bin", name), args...)
}

// startProgram does so with any program.
func (d *demo) startProgram(name, program string, args ...string) (*process, error) {
	log, err := os.Create(d.path(fmt.Sprintf("%s-%d.log", name, len(d.processes))))
	if err != nil {
		return nil, err
	}
	p := &process{name: name, log: log, cmd: exec.Command(program, args...), done: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// A group of its own: Ctrl-C in the terminal reaches the demo alone, which then stops things in order.
	p.cmd.SysProcAttr = childAttributes()
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", name, err), log.Close())
	}
	go func() { p.done <- p.cmd.Wait() }()
	d.processes = append(d.processes, p)
	return p, nil
}

// stop asks the program to end, and kills it when it does not.
func (p *process) stop() error {
	if p.killed {
		return nil
	}
	defer p.log.Close()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	select {
	case err := <-p.done:
		if err != nil {
			return fmt.Errorf("%s ended with %w", p.name, err)
		}
		return nil
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill() // It may have ended just now.
		return fmt.Errorf("%s did not stop within 30 s and was killed: %v", p.name, <-p.done)
	}
}

// kill ends the program at once, without a chance to tidy up.
func (p *process) kill() error {
	p.killed = true
	defer p.log.Close()
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("killing %s: %w", p.name, err)
	}
	if err := <-p.done; err == nil {
		return fmt.Errorf("%s had ended before it was killed", p.name)
	}
	return nil
}

// waitReady waits until url answers 200, or the process has ended.
func (p *process) waitReady(ctx context.Context, url string) error {
	return waitFor(ctx, p.name+" to be ready", func(ctx context.Context) error {
		select {
		case err := <-p.done:
			p.done <- err
			return &finalError{fmt.Errorf("%s ended: %v; see %s", p.name, err, p.log.Name())}
		default:
		}
		return get(ctx, url, nil)
	})
}

// freeAddress returns a loopback address that nobody listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// freePort returns a port that nobody listens on at any address.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	_, text, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// build compiles the programs from this checkout.
func (d *demo) build(ctx context.Context) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	d.root = root
	say("Building manager, agent and kubectl-hashring")
	if err := os.Mkdir(d.path("bin"), 0o755); err != nil {
		return err
	}
	return d.compile(ctx, "-ldflags="+d.ldflags, "-o", d.path("bin")+string(filepath.Separator), "./cmd/manager", "./cmd/agent", "./cmd/kubectl-hashring")
}

// compile runs go build in this checkout.
func (d *demo) compile(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = d.root, os.Stderr, os.Stderr
	return cmd.Run()
}

// finalError ends a wait at once.
type finalError struct{ error }

// waitFor calls check until it succeeds.
func waitFor(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if final := (*finalError)(nil); err == nil || errors.As(err, &final) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; at last: %w", what, ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// get asks for url and passes the body to read, if that is not nil.
func get(ctx context.Context, url string, read func(*http.Response) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	return do(request, read)
}

// do sends a request, which has to be answered with 200.
func do(request *http.Request, read func(*http.Response) error) error {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", request.URL, response.Status)
	}
	if read == nil {
		return nil
	}
	return read(response)
}
