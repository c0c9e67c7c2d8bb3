// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/ringwright/ringwright/internal/testenv"
)

// poll is how often the operator is asked whether it is done. A scrape costs it a few milliseconds.
const poll = 200 * time.Millisecond

// patience is how long anything may take before the program gives up.
const patience = 30 * time.Minute

// build compiles the operator from this checkout, as a program of its own: its memory is then its own.
func (l *load) build(ctx context.Context) (err error) {
	if l.root, err = testenv.ModuleRoot(); err != nil {
		return err
	}
	l.say("building the operator")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-X main.consumerLoopback=true",
		"-o", filepath.Join(l.dir, "manager"), "./cmd/manager")
	cmd.Dir, cmd.Stderr = l.root, os.Stderr
	return cmd.Run()
}

// operator is a running operator.
type operator struct {
	cmd     *exec.Cmd
	done    chan error
	log     *os.File
	metrics string
}

// startOperator starts the operator with the service account and the arguments of config/manager, but for the addresses: the
// metrics are plain, on the loopback interface.
func (l *load) startOperator(context.Context) error {
	user, err := l.cluster.controlPlane.ServiceAccount(systemNamespace, serviceAccount)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(l.dir, "manager.kubeconfig")
	if err := os.WriteFile(kubeconfig, user.Kubeconfig, 0o600); err != nil {
		return err
	}
	metrics, err := freeAddress()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(l.dir, "manager.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	o := &operator{metrics: "http://" + metrics + "/metrics", log: log, done: make(chan error, 1)}
	o.cmd = exec.Command(filepath.Join(l.dir, "manager"), "--kubeconfig="+kubeconfig, "--leader-elect",
		"--leader-election-namespace="+systemNamespace, "--catalog-namespace="+systemNamespace, "--metrics-bind-address="+metrics, "--metrics-insecure", "--health-probe-bind-address=0")
	o.cmd.Stderr = log
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches this program alone, which then stops things in order.
	if err := o.cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("starting the operator: %w", err), log.Close())
	}
	go func() { o.done <- o.cmd.Wait() }()
	l.operator = o
	return nil
}

// stop asks the operator to end and waits for it.
func (o *operator) stop() error {
	defer o.log.Close()
	if err := o.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping the operator: %w", err)
	}
	select {
	case err := <-o.done:
		o.done <- err
		if err != nil {
			return fmt.Errorf("the operator ended with %w", err)
		}
		return nil
	case <-time.After(time.Minute):
		return errors.Join(errors.New("the operator did not stop within a minute"), o.cmd.Process.Kill())
	}
}

// idle waits until the operator has reconciled at least rings times, and has nothing left to do: no ring is queued or being
// looked at. It looks at rings only when all of them are queued, so that none is left out.
func (o *operator) idle(ctx context.Context, rings int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		families, err := o.scrape(ctx)
		if err == nil && total(families["controller_runtime_reconcile_total"]) >= float64(rings) &&
			total(families["workqueue_depth"]) == 0 && total(families["controller_runtime_active_workers"]) == 0 {
			return nil
		}
		select {
		case err := <-o.done:
			o.done <- err
			return fmt.Errorf("the operator ended: %v; see %s", err, o.log.Name())
		default:
		}
		if err := pause(ctx, poll); err != nil {
			return fmt.Errorf("waiting for the operator to have nothing left to do: %w", err)
		}
	}
}

// scrape reads the operator's metrics.
func (o *operator) scrape(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.metrics, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(response.Body)
}

// total adds up the gauges and counters of a family that are those of the HashRing controller.
func total(family *dto.MetricFamily) float64 {
	sum := 0.0
	for _, metric := range family.GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "controller" && label.GetValue() == "hashring" {
				sum += metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// bytes reads a size of the process from /proc, such as VmRSS, or VmHWM, its peak.
func (o *operator) bytes(field string) (int64, error) {
	path := fmt.Sprintf("/proc/%d/status", o.cmd.Process.Pid)
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == field+":" {
			kibibytes, err := strconv.ParseInt(words[1], 10, 64)
			return kibibytes << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no %s", path, field)
}

// freeAddress returns a loopback address that nobody listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
