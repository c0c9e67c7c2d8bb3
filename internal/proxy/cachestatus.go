// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// cacheStatus is whether a backend that is a cache had an answer. It is a label of metrics.
type cacheStatus uint8

const (
	cacheHit cacheStatus = iota
	cacheMiss
	cacheExpired // it had one that was too old, and asked its origin
	cacheStale   // it gave one that was too old
	cacheBypass  // it did not look
	cacheOther   // it does not say, or something else
	cacheStatusCount
)

var cacheStatusNames = [cacheStatusCount]string{"HIT", "MISS", "EXPIRED", "STALE", "BYPASS", "OTHER"}

// cacheWords are what caches say, in lower case: NGINX, Varnish, Squid, Apache Traffic Server and CDNs. What NGINX has revalidated was
// expired, and while it is updating it gives what is stale.
var cacheWords = map[string]cacheStatus{
	"hit": cacheHit, "miss": cacheMiss, "expired": cacheExpired, "revalidated": cacheExpired, "stale": cacheStale, "updating": cacheStale,
	"bypass": cacheBypass, "pass": cacheBypass,
}

// forwarded are the reasons for which a cache asked its origin (RFC 9211, 2.2).
var forwarded = map[string]cacheStatus{
	"miss": cacheMiss, "uri-miss": cacheMiss, "vary-miss": cacheMiss, "stale": cacheExpired, "bypass": cacheBypass, "method": cacheBypass,
	"request": cacheBypass,
}

// parseCacheStatus reads what a backend says. Of several caches behind each other the last one is the backend: each adds itself at the
// end. It is one word, with more behind it or not, or an item of the header Cache-Status with its parameters.
func parseCacheStatus(values []string) cacheStatus {
	if len(values) == 0 {
		return cacheOther
	}
	last := values[len(values)-1]
	last = strings.ToLower(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:]))
	word, parameters, isItem := strings.Cut(last, ";")
	if isItem {
		return parseCacheItem(parameters)
	}
	word, _, _ = strings.Cut(word, " ")
	if status, known := cacheWords[strings.TrimPrefix(word, "tcp_")]; known {
		return status
	}
	return cacheOther
}

func parseCacheItem(parameters string) cacheStatus {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if status, known := forwarded[value]; name == "fwd" && known {
			return status
		}
		if name == "hit" && value != "?0" {
			return cacheHit
		}
	}
	return cacheOther
}

// cacheAnswers counts answers by what the caches say.
type cacheAnswers struct {
	vec    *prometheus.CounterVec
	counts [roleCount][cacheStatusCount]prometheus.Counter
}

func newCacheAnswers() *cacheAnswers {
	a := &cacheAnswers{vec: counters("cache_responses_total",
		"Answers of backends, by whether they had them in their cache and ring that decided.", "status", "role")}
	for _, role := range []roleLabel{roleStable, roleCandidate} { // A backend that answers was decided on.
		for status, name := range cacheStatusNames {
			a.counts[role][status] = a.vec.WithLabelValues(name, roleNames[role])
		}
	}
	return a
}

func (a *cacheAnswers) count(values []string, role roleLabel) {
	a.counts[role][parseCacheStatus(values)].Inc()
}
