// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringwright/ringwright/pkg/ring"
)

// nginxKeys is how many keys TestOwnersEqualNGINX asks in each order of the configuration.
const nginxKeys = 2000

// TestOwnersEqualNGINX starts NGINX with "hash $arg_k consistent" over weighted servers on loopback, asks it for keys, and
// compares who answered with the owners of V1. It needs the package nginx-light of Debian or Ubuntu.
func TestOwnersEqualNGINX(t *testing.T) {
	binary := findNGINX(t)
	servers := listenForUpstreams(t)
	r := buildWithoutTies(t, &servers)
	front := listen(t, "127.0.0.1")
	startNGINX(t, binary, nginxConfig(t, front, servers), append(listeners(servers), front))

	rnd := rand.New(rand.NewPCG(2024, 1))
	owned := map[string]int{}
	for range nginxKeys {
		key := randomKey(rnd)
		owner, err := r.Owner(ring.Hash([]byte(key)))
		if err != nil {
			t.Fatal(err)
		}
		owned[r.ID(owner)]++
		for _, order := range []string{"forward", "backward"} {
			if got := ask(t, front.Addr(), order, key); got != r.ID(owner) {
				t.Errorf("%s, key %q: NGINX chose %s, V1 says %s", order, key, got, r.ID(owner))
			}
		}
	}
	for _, s := range servers {
		if owned[s.text] == 0 {
			t.Errorf("no key belongs to %s, so it was not compared", s.text)
		}
	}
}

// upstream is one server of NGINX's configuration and the sockets on which it is answered for.
type upstream struct {
	text    string
	weight  int
	sockets []*net.TCPListener
}

// findNGINX returns the path of NGINX. Without it the test is skipped, in CI it fails.
func findNGINX(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil && runtime.GOOS == "linux" {
			return path
		}
	}
	const advice = "this test compares with NGINX on Linux, which is not installed: apt-get install nginx-light"
	if os.Getenv("CI") != "" {
		t.Fatal(advice)
	}
	t.Skip(advice)
	return ""
}

// listen returns a socket on a free port of host.
func listen(t *testing.T, host string) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.(*net.TCPListener)
}

func port(l *net.TCPListener) int { return l.Addr().(*net.TCPAddr).Port }

// listenForUpstreams opens the sockets of servers with the weights 1 to 10 and every kind of host: IPv4, a name, and
// IPv6 in two spellings where the machine has it.
func listenForUpstreams(t *testing.T) []upstream {
	t.Helper()
	var servers []upstream
	add := func(host string, sockets ...*net.TCPListener) {
		text := fmt.Sprintf("%s:%d", host, port(sockets[0]))
		servers = append(servers, upstream{text, 1 + len(servers)%10, sockets})
	}
	for _, host := range []string{"127.0.0.1", "127.0.0.1", "127.0.0.2", "127.1.2.3", "127.10.200.30", "127.255.255.254", "127.0.0.10"} {
		add(host, listen(t, host))
	}
	add("localhost", listenByName(t, "localhost")...)
	add("localhost", listenByName(t, "localhost")...)
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Logf("IPv6 is not compared, this machine has no ::1: %v", err)
	} else {
		_ = l.Close()
		for _, host := range []string{"[::1]", "[::1]", "[0:0::1]", "[::1]"} {
			add(host, listen(t, "::1"))
		}
	}
	return servers
}

// listenByName listens on one port of every address that a name has, because NGINX spreads the keys of the name over
// all of them.
func listenByName(t *testing.T, name string) []*net.TCPListener {
	t.Helper()
	hosts, err := net.LookupHost(name)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	sockets := []*net.TCPListener{listen(t, hosts[0])}
	for _, host := range hosts[1:] {
		l, err := net.Listen("tcp", net.JoinHostPort(host, fmt.Sprint(port(sockets[0]))))
		if err != nil {
			t.Logf("%s has an address that this machine has not: %v", name, err)
			continue
		}
		t.Cleanup(func() { _ = l.Close() })
		sockets = append(sockets, l.(*net.TCPListener))
	}
	return sockets
}

// buildWithoutTies returns the ring of the servers. Where two of them have a point in common, NGINX goes by the order of
// its configuration; the test is about everything else, so it takes other ports until there is no such point.
func buildWithoutTies(t *testing.T, servers *[]upstream) *ring.Ring {
	t.Helper()
	for {
		c := ring.Config{Algorithm: ring.Algorithm{Version: ring.V1, PointsPerWeight: ring.V1PointsPerWeight}, Identity: ring.IdentityNGINX}
		for _, s := range *servers {
			c.Backends = append(c.Backends, ring.Backend{ID: s.text, Weight: uint32(s.weight)})
		}
		r := mustBuild(t, c)
		if r.Stats().Collisions == 0 {
			return r
		}
		*servers = listenForUpstreams(t)
	}
}

func listeners(servers []upstream) (all []*net.TCPListener) {
	for _, s := range servers {
		all = append(all, s.sockets...)
	}
	return all
}

// nginxConfig writes a configuration with the servers as an upstream in this order and in the opposite one, and for each
// server a block that answers with its text. It returns the path.
func nginxConfig(t *testing.T, front *net.TCPListener, servers []upstream) string {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	fmt.Fprintf(&b, "daemon off;\nworker_processes 1;\npid %s/nginx.pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n", dir)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&b, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	b.WriteString("keepalive_requests 100000;\nproxy_http_version 1.1;\nproxy_set_header Connection \"\";\nproxy_next_upstream off;\n")
	fmt.Fprintf(&b, "server { listen %s;\n", front.Addr())
	for _, name := range []string{"forward", "backward"} {
		fmt.Fprintf(&b, "location = /%s { proxy_pass http://%s; }\n", name, name)
	}
	b.WriteString("}\n")
	for _, name := range []string{"forward", "backward"} {
		fmt.Fprintf(&b, "upstream %s { hash $arg_k consistent;\n", name)
		for _, s := range servers {
			fmt.Fprintf(&b, "server %s weight=%d;\n", s.text, s.weight)
		}
		b.WriteString("keepalive 64; }\n")
		servers = slices.Clone(servers)
		slices.Reverse(servers)
	}
	for _, s := range servers {
		b.WriteString("server {")
		for _, l := range s.sockets {
			fmt.Fprintf(&b, " listen %s;", l.Addr())
		}
		fmt.Fprintf(&b, " return 200 \"%s\"; }\n", s.text)
	}
	b.WriteString("}\n")
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startNGINX runs NGINX until the test ends. It hands over the sockets in the way in which NGINX hands them to its own
// successor: so no port can be taken in between, and a request that comes early waits in the queue of its socket.
func startNGINX(t *testing.T, binary, config string, sockets []*net.TCPListener) {
	t.Helper()
	// The shell ends NGINX when its input does, which the kernel sees to even where the test is killed.
	command := exec.Command("/bin/sh", "-c", `"$0" -p "${1%/*}/" -c "$1" & read -r _; kill $!; wait`, binary, config)
	handover := ""
	for i, l := range sockets {
		file, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		command.ExtraFiles = append(command.ExtraFiles, file)
		handover += fmt.Sprintf("%d;", 3+i)
	}
	command.Env = append(os.Environ(), "NGINX="+handover)
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
	for _, l := range sockets {
		_ = l.Close() // If NGINX does not start, requests fail at once.
	}
}

var nginxClient = &http.Client{Timeout: 30 * time.Second}

// ask returns the text of the server that NGINX chose for key.
func ask(t *testing.T, front net.Addr, order, key string) string {
	t.Helper()
	response, err := nginxClient.Get(fmt.Sprintf("http://%s/%s?k=%s", front, order, key))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("key %q: %s, %v: %s", key, response.Status, err, body)
	}
	return string(body)
}

// randomKey returns a key that stands in a URL as it is.
func randomKey(rnd *rand.Rand) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
	key := make([]byte, 1+rnd.IntN(40))
	for i := range key {
		key[i] = letters[rnd.IntN(len(letters))]
	}
	return string(key)
}
