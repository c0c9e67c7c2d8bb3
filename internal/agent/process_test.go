// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ringwright/ringwright/pkg/routing"
)

// process is an agent that is a process of its own, on a Unix socket and on free ports.
type process struct {
	command *exec.Cmd
	log     *lockedBuffer
	// local and status are the addresses of its listeners.
	local, status string
	exited        chan error
}

// lockedBuffer can be read while the process writes to it.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.String()
}

// freePort returns an address that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// startProcess starts an agent and waits until it is ready.
func startProcess(t *testing.T, dir string, flags ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{log: &lockedBuffer{}, local: freePort(t), status: freePort(t), exited: make(chan error, 1)}
	p.command = exec.Command(self, append([]string{"--dir=" + dir, "--listen=" + p.local, "--status-listen=" + p.status}, flags...)...)
	p.command.Env = append(os.Environ(), agentVariable+"=1")
	p.command.Stderr = p.log
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.exited <- p.command.Wait(); close(p.exited) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		_ = p.command.Process.Kill()
		for range p.exited { // Until it is closed.
		}
	})
	eventually(t, "the process", func() bool {
		answer, err := http.Get("http://" + p.status + "/readyz")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return p
}

// terminate sends SIGTERM.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

const rawLookup = "GET /v1/lookup?key=a HTTP/1.1\r\nHost: localhost\r\n\r\n"

// caller sends lookups over one connection after the other, and knows what became of each. It retries nothing.
type caller struct {
	network, address    string
	answered, newOnes   atomic.Int64
	firstLoss           atomic.Pointer[string]
	everyAnswerOnItsOwn bool
}

// call sends lookups until the agent refuses connections or mayConnect says that none may be opened any more. Every request that was
// sent must be answered.
func (c *caller) call(mayConnect func() bool) {
	for mayConnect() {
		conn, err := net.Dial(c.network, c.address)
		if err != nil {
			return
		}
		c.newOnes.Add(1)
		answers := bufio.NewReader(conn)
		for goesOn := true; goesOn; {
			if _, err = io.WriteString(conn, rawLookup); err != nil {
				break
			}
			var answer *http.Response
			if answer, err = http.ReadResponse(answers, nil); err != nil {
				break
			}
			_, err = io.Copy(io.Discard, answer.Body)
			if err == nil && answer.StatusCode != http.StatusOK {
				err = errors.New(answer.Status)
			}
			if err != nil {
				break
			}
			c.answered.Add(1)
			goesOn = !answer.Close && !c.everyAnswerOnItsOwn
		}
		_ = conn.Close()
		if err != nil {
			loss := err.Error()
			c.firstLoss.CompareAndSwap(nil, &loss)
			return
		}
	}
}

// TestSIGTERMUnderLoadLosesNoRequest: callers that keep their connections learn from the answers that they are to end. Others look at
// readyz now and then, as a load balancer does, and open no more once it says that the agent drains.
func TestSIGTERMUnderLoadLosesNoRequest(t *testing.T) {
	dir, socket := t.TempDir(), filepath.Join(t.TempDir(), "s")
	publish(t, dir, 1, names(t, "one", "two"))
	p := startProcess(t, dir, "--drain-delay=600ms", "--unix-socket="+socket)
	var drains atomic.Bool
	kept := &caller{network: "tcp", address: p.local}
	unix := &caller{network: "unix", address: socket}
	fresh := &caller{network: "tcp", address: p.local, everyAnswerOnItsOwn: true}
	var running sync.WaitGroup
	for _, c := range []*caller{kept, unix, fresh} {
		for range 4 {
			running.Go(func() { c.call(func() bool { return !drains.Load() }) })
		}
	}
	eventually(t, "some load", func() bool {
		return kept.answered.Load() > 200 && unix.answered.Load() > 200 && fresh.answered.Load() > 50
	})
	p.terminate(t)
	eventually(t, "the drain", func() bool { return get(t, "http://"+p.status+"/readyz").status == http.StatusServiceUnavailable })
	before := fresh.answered.Load()
	eventually(t, "answers in the drain, and callers that were told to end", func() bool {
		return fresh.answered.Load() > before && kept.newOnes.Load() > 4 && unix.newOnes.Load() > 4
	})
	drains.Store(true)
	running.Wait()
	if err := <-p.exited; err != nil {
		t.Errorf("the process: %v\n%s", err, p.log.text())
	}
	for name, c := range map[string]*caller{"keeps its connection": kept, "over the Unix socket": unix, "a connection for each": fresh} {
		if loss := c.firstLoss.Load(); loss != nil {
			t.Errorf("%s: a request was lost after %d answers: %s", name, c.answered.Load(), *loss)
		}
	}
}

// TestSIGTERMOfTheProxyUnderLoad: requests through the proxy are not lost either.
func TestSIGTERMOfTheProxyUnderLoad(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(time.Millisecond) // So that some run at any time.
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(backend.Close)
	dir, address := t.TempDir(), strings.TrimPrefix(backend.URL, "http://")
	publishFile(t, dir, routing.File{Generation: 1, Addresses: map[string]string{"one": address, "two": address}}, names(t, "one", "two"), nil)
	through := freePort(t)
	p := startProcess(t, dir, "--drain-delay=300ms", "--proxy-listen="+through)
	var drains atomic.Bool
	kept := &caller{network: "tcp", address: through}
	fresh := &caller{network: "tcp", address: through, everyAnswerOnItsOwn: true}
	var running sync.WaitGroup
	for _, c := range []*caller{kept, fresh} {
		for range 4 {
			running.Go(func() { c.call(func() bool { return !drains.Load() }) })
		}
	}
	eventually(t, "some load", func() bool { return kept.answered.Load() > 200 && fresh.answered.Load() > 50 })
	p.terminate(t)
	eventually(t, "the drain", func() bool { return get(t, "http://"+p.status+"/readyz").status == http.StatusServiceUnavailable })
	before := fresh.answered.Load()
	eventually(t, "answers in the drain", func() bool { return fresh.answered.Load() > before && kept.newOnes.Load() > 4 })
	drains.Store(true)
	running.Wait()
	if err := <-p.exited; err != nil {
		t.Errorf("the process: %v\n%s", err, p.log.text())
	}
	for name, c := range map[string]*caller{"keeps its connection": kept, "a connection for each": fresh} {
		if loss := c.firstLoss.Load(); loss != nil {
			t.Errorf("%s: a request was lost after %d answers: %s", name, c.answered.Load(), *loss)
		}
	}
}

// TestSIGTERMWithoutDelay: no request on a connection that is open is lost, though the listeners close at once.
func TestSIGTERMWithoutDelay(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one", "two"))
	p := startProcess(t, dir)
	var stopped atomic.Bool
	kept := &caller{network: "tcp", address: p.local}
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() { kept.call(func() bool { return !stopped.Load() }) })
	}
	eventually(t, "some load", func() bool { return kept.answered.Load() > 500 })
	stopped.Store(true) // Nobody connects again.
	p.terminate(t)
	running.Wait()
	if err := <-p.exited; err != nil {
		t.Errorf("the process: %v\n%s", err, p.log.text())
	}
	if loss := kept.firstLoss.Load(); loss != nil {
		t.Errorf("a request was lost after %d answers: %s", kept.answered.Load(), *loss)
	}
}

// TestFlood opens 10,000 connections at a time, of which as many as the limit says are served and all others are told to come again.
func TestFlood(t *testing.T) {
	const limit = 1000
	connections := 10_000
	if spare := openFiles(t) - 500; spare < connections {
		connections = max(spare, 2*limit)
		t.Logf("there are %d connections: there may be no more open files", connections)
	}
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	p := startProcess(t, dir, fmt.Sprintf("--max-connections=%d", limit))
	results, release := make(chan string, connections), make(chan struct{})
	var running sync.WaitGroup
	for range connections {
		running.Go(func() { results <- knock(p.local, release, &running) })
	}
	counts := map[string]int{}
	for range connections {
		counts[<-results]++
	}
	if counts["200"] != limit || counts["503, again in 1 s"] != connections-limit || len(counts) != 2 {
		t.Errorf("the answers are %v", counts)
	}
	// Probes are not in the way of the flood, nor is it in theirs.
	checkProbe(t, "http://"+p.status+"/readyz", http.StatusOK, "ready")
	checkProbe(t, "http://"+p.status+"/metrics", http.StatusOK, fmt.Sprintf(`ringwright_agent_connections{listener="local"} %d`, limit))
	close(release)
	running.Wait()
	eventually(t, "a place", func() bool { return get(t, "http://"+p.local+"/v1/lookup?key=a").status == http.StatusOK })
	p.terminate(t)
	if err := <-p.exited; err != nil {
		t.Errorf("the process: %v\n%s", err, p.log.text())
	}
}

// openFiles returns how many files this process can have open, once it has asked for as many as it may.
func openFiles(t *testing.T) int {
	t.Helper()
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	if files.Cur = files.Max; syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files) != nil {
		t.Log("the limit of open files stays as it is")
	}
	return int(min(files.Max, 1<<20))
}

// knock opens a connection, asks, and says what the answer was. It keeps a connection that is served open until release.
func knock(address string, release <-chan struct{}, running *sync.WaitGroup) string {
	conn, err := (&net.Dialer{Timeout: 30 * time.Second}).Dial("tcp", address)
	if err != nil {
		return "no connection: " + err.Error()
	}
	answer := ask(conn)
	if answer != "200" {
		_ = conn.Close()
		return answer
	}
	running.Go(func() {
		<-release
		_ = conn.Close()
	})
	return answer
}

// ask sends a lookup and says what the answer was.
func ask(conn net.Conn) string {
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, rawLookup); err != nil {
		return "not sent: " + err.Error()
	}
	var buf [2048]byte
	n := 0
	for !bytes.HasSuffix(buf[:n], []byte("}\n")) { // Which is how every answer ends.
		read, err := conn.Read(buf[n:])
		if n += read; err != nil {
			return fmt.Sprintf("%q and then %v", buf[:n], err)
		}
	}
	answer := string(buf[:n])
	switch {
	case strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n"):
		return "200"
	case strings.HasPrefix(answer, "HTTP/1.1 503 Service Unavailable\r\n") && strings.Contains(answer, "\r\nRetry-After: 1\r\n") &&
		strings.Contains(answer, "\r\nConnection: close\r\n") && strings.Contains(answer, `{"error":"too many connections`):
		return "503, again in 1 s"
	default:
		return answer
	}
}
