// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"testing"

	"github.com/ringwright/ringwright/internal/proxy"
)

// BenchmarkProxy compares the proxy with httputil.ReverseProxy and a fixed target, over loopback with kept connections.
func BenchmarkProxy(b *testing.B) {
	for _, size := range []int{100, 1 << 20} {
		content := make([]byte, size)
		target := backend(b, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(size))
			_, _ = w.Write(content)
		})
		c := proxy.DefaultConfig()
		f := newFleet(b, c, map[string]string{"a": target, "b": target, "c": target}, "a", "b", "c")
		fixed := httptest.NewServer(plainProxy(target))
		b.Cleanup(fixed.Close)
		for name, address := range map[string]string{"fixed": fixed.URL, "ring": f.url} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(size))
				buffer := make([]byte, 64<<10)
				n := 0
				for b.Loop() {
					n++
					fetch(b, f.http, address+"/"+strconv.Itoa(n&1023), buffer, size)
				}
			})
		}
	}
}

// plainProxy is what the proxy is compared with.
func plainProxy(target string) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: target})
			r.SetXForwarded()
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
	}
}

func fetch(b *testing.B, client *http.Client, url string, buffer []byte, want int) {
	response, err := client.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for {
		m, err := response.Body.Read(buffer)
		n += m
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	_ = response.Body.Close()
	if n != want || response.StatusCode != http.StatusOK {
		b.Fatalf("%s: %d, %d bytes", url, response.StatusCode, n)
	}
}
