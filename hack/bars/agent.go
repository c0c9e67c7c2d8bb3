// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

const (
	// agentRequests is how many requests a round sends, and agentRounds how many rounds there are.
	agentRequests = 2000
	agentRounds   = 15
	// batchKeys is how many keys a batch has.
	batchKeys = 100
	// agentKey is a key of 32 bytes.
	agentKey = "videos/0123456789abcdef/720p.mp4"
)

// loopback is a connection on this host over which the same request is sent again and again. It is leaner than any client, so that what is measured
// is the server.
type loopback struct {
	conn    net.Conn
	answers *bufio.Reader
	request []byte
	// answer are the bytes of the first answer, header and all; later ones are as long.
	answer []byte
}

// newLoopback connects and sends the request once.
func newLoopback(network, address string, request []byte) (*loopback, error) {
	conn, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	l := &loopback{conn: conn, answers: bufio.NewReaderSize(conn, 64<<10), request: request}
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	var seen bytes.Buffer
	answer, err := http.ReadResponse(bufio.NewReader(io.TeeReader(l.answers, &seen)), nil)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %w", answer.Status, body, err)
	}
	l.answer = seen.Bytes()
	return l, nil
}

// work sends the request n times.
func (l *loopback) work(n int) error {
	for range n {
		if _, err := l.conn.Write(l.request); err != nil {
			return err
		}
		if _, err := l.answers.Discard(len(l.answer)); err != nil {
			return err
		}
	}
	return nil
}

// way sends a number of requests.
func (l *loopback) way(n int) way {
	return way{warm: func() error { return l.work(n / 10) }, work: func() error { return l.work(n) }}
}

// serving is an agent in this process that answers from two mounted rings.
type serving struct {
	mounted *mounted
	address string
	stop    func() error
}

func newServing() (*serving, error) {
	m, err := newMounted()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	listening, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- agent.Run(ctx, agent.Config{
			Dir: m.dir, Listen: "127.0.0.1:0", Datacenter: lab, ShutdownTimeout: time.Second,
			Listening: func(_ string, address net.Addr) { listening <- address.String() },
		})
	}()
	select {
	case err := <-ended:
		cancel()
		return nil, err
	case address := <-listening:
		return &serving{mounted: m, address: address, stop: func() error {
			cancel()
			m.remove()
			return <-ended
		}}, nil
	}
}

func singleRequest() []byte {
	return []byte("GET /v1/lookup?key=" + agentKey + " HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n")
}

func batchRequest() ([]byte, error) {
	var keys []string
	for i := range batchKeys {
		keys = append(keys, fmt.Sprintf("videos/%016x/720p.mp4", uint32(i)*0x9e3779b1))
	}
	body, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		return nil, err
	}
	head := "POST /v1/lookup HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: "
	return append([]byte(head+strconv.Itoa(len(body))+"\r\n\r\n"), body...), nil
}

// compareAgent times two ways of asking the agent, or the agent and something else, in turns.
func compareAgent(ways func(s *serving) (first, second way, err error)) (figure float64, err error) {
	s, err := newServing()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	first, second, err := ways(s)
	if err != nil {
		return 0, err
	}
	return speedup(agentRounds, first, second)
}

// agentThroughput compares a lookup over HTTP with a handler that answers the same bytes.
func agentThroughput() (float64, error) {
	return compareAgent(func(s *serving) (way, way, error) {
		lookup, err := newLoopback("tcp", s.address, singleRequest())
		if err != nil {
			return way{}, way{}, err
		}
		address, err := serveBare(lookup.answer)
		if err != nil {
			return way{}, way{}, err
		}
		bare, err := newLoopback("tcp", address, singleRequest())
		if err != nil {
			return way{}, way{}, err
		}
		if len(bare.answer) != len(lookup.answer) {
			return way{}, way{}, fmt.Errorf("the bare handler answers %q, the agent %q", bare.answer, lookup.answer)
		}
		return lookup.way(agentRequests), bare.way(agentRequests), nil
	})
}

// serveBare serves, for as long as the process lives, a handler that answers what another one did.
func serveBare(recorded []byte) (string, error) {
	_, body, _ := bytes.Cut(recorded, []byte("\r\n\r\n"))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "no-store")
			_, _ = w.Write(body)
		}))
	}()
	return listener.Addr().String(), nil
}

// agentBatches returns how many times as many lookups a second batches of 100 keys make as single calls.
func agentBatches() (float64, error) {
	ratio, err := compareAgent(func(s *serving) (way, way, error) {
		request, err := batchRequest()
		if err != nil {
			return way{}, way{}, err
		}
		batch, err := newLoopback("tcp", s.address, request)
		if err != nil {
			return way{}, way{}, err
		}
		single, err := newLoopback("tcp", s.address, singleRequest())
		if err != nil {
			return way{}, way{}, err
		}
		return batch.way(agentRequests), single.way(agentRequests), nil
	})
	return batchKeys * ratio, err
}

// agentMemory returns how many MiB of memory an agent takes, resident, that follows a ring of 1 MiB and has answered 10,000 lookups.
func agentMemory() (figure float64, err error) {
	dir, err := os.MkdirTemp("", "ringwright-bars-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, mount := filepath.Join(dir, "agent"), filepath.Join(dir, "mount")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "github.com/ringwright/ringwright/cmd/agent")
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr // As the image has it.
	if err := build.Run(); err != nil {
		return 0, fmt.Errorf("building the agent: %w", err)
	}
	if err := mountMebibyte(mount); err != nil {
		return 0, err
	}
	socket := filepath.Join(dir, "s")
	command := exec.Command(program, "--dir="+mount, "--unix-socket="+socket, "--log-level=error",
		"--listen=127.0.0.1:0", "--status-listen=127.0.0.1:0", "--grpc-listen=127.0.0.1:0")
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}()
	l, err := eventually(func() (*loopback, error) { return newLoopback("unix", socket, singleRequest()) })
	if err != nil {
		return 0, err
	}
	if err := l.work(10_000); err != nil {
		return 0, err
	}
	return residentMebibytes(command.Process.Pid)
}

// mountMebibyte writes a ring whose snapshot has about 1 MiB as kubelet would.
func mountMebibyte(dir string) error {
	r, err := ring.Build(backends(fleetBackends, 1, 140))
	if err != nil {
		return err
	}
	if n := len(r.Snapshot()); n < 1<<20 || n > 1<<20+1<<16 {
		return fmt.Errorf("the snapshot has %d bytes, not about 1 MiB", n)
	}
	ref := routing.NewReference(routing.SlotA, r.Digest(), r.Algorithm().Version.String(), 1)
	file, err := routing.File{APIVersion: routing.APIVersion, Ring: "cdn/edge", Generation: 1, Stable: ref}.Encode()
	if err != nil {
		return err
	}
	return materialize.Write(dir, map[string][]byte{
		routing.FileName: file, routing.SlotA.FileName(): r.Snapshot(), routing.SlotB.FileName(): ring.EmptySlot(),
	})
}

// eventually tries until it succeeds, for some seconds.
func eventually(try func() (*loopback, error)) (*loopback, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var l *loopback
	var err error
	for range 500 {
		if l, err = try(); err == nil {
			return l, nil
		}
		<-tick.C
	}
	return nil, err
}

// residentMebibytes returns what the kernel counts as resident for a process: its own memory, and what it has mapped and touched of
// its program and of the snapshots.
func residentMebibytes(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if text, found := strings.CutPrefix(line, "VmRSS:"); found {
			kibibytes, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(text), " kB"))
			return float64(kibibytes) / 1024, err
		}
	}
	return 0, errors.New("the kernel does not say what is resident")
}
