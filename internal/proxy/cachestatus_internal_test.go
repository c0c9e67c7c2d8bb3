// SPDX-License-Identifier: Apache-2.0

package proxy

import "testing"

// TestParseCacheStatus: what caches of several makes say.
func TestParseCacheStatus(t *testing.T) {
	for _, row := range []struct {
		want   string
		values []string
	}{
		{"HIT", []string{"HIT"}}, {"MISS", []string{"miss"}}, {"EXPIRED", []string{"EXPIRED"}}, {"STALE", []string{"STALE"}}, {"BYPASS", []string{"BYPASS"}},
		{"EXPIRED", []string{"REVALIDATED"}}, {"STALE", []string{"UPDATING"}}, // NGINX.
		{"BYPASS", []string{"PASS"}}, {"OTHER", []string{"SYNTH"}}, // Varnish.
		{"HIT", []string{"Hit from cloudfront"}}, {"MISS", []string{"TCP_MISS from a1-2.example (AkamaiGHost/1)"}},
		{"HIT", []string{"MISS, HIT"}}, {"HIT", []string{"MISS", " HIT "}}, // The last one is the backend.
		{"HIT", []string{"ExampleCache; hit"}}, {"HIT", []string{`"edge"; hit=?1; ttl=376`}}, {"MISS", []string{"ExampleCache; hit=?0; fwd=miss"}},
		{"MISS", []string{"ExampleCache; fwd=uri-miss; stored"}}, {"MISS", []string{"ExampleCache;fwd=vary-miss"}},
		{"EXPIRED", []string{"ExampleCache; fwd=stale; fwd-status=304"}}, {"BYPASS", []string{"ExampleCache; fwd=bypass; detail=x"}},
		{"BYPASS", []string{"ExampleCache; fwd=method"}}, {"OTHER", []string{"ExampleCache; fwd=partial"}},
		{"HIT", []string{"OriginCache; fwd=uri-miss, EdgeCache; hit"}}, {"MISS", []string{"Origin; hit", "Edge; fwd=miss"}},
		{"OTHER", nil}, {"OTHER", []string{""}}, {"OTHER", []string{","}}, {"OTHER", []string{";"}}, {"OTHER", []string{"hits"}}, {"OTHER", []string{"yes; it was"}},
	} {
		if got := cacheStatusNames[parseCacheStatus(row.values)]; got != row.want {
			t.Errorf("%q is %s, want %s", row.values, got, row.want)
		}
	}
}
