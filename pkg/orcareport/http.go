// SPDX-License-Identifier: Apache-2.0

package orcareport

import (
	"net/http"

	"github.com/felixge/httpsnoop"
)

// Handler counts the requests of a server that speaks HTTP, which has its load pushed, see Push. A handler that writes nothing has answered 200,
// one that panics has failed.
func (r *Reporter) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		s, returned, status := r.counter.begin(r.now()), false, 0
		defer func() { s.end(r.now(), !returned || r.options.IsHTTPError(status)) }()
		next.ServeHTTP(httpsnoop.Wrap(w, httpsnoop.Hooks{
			WriteHeader: func(original httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
				return func(code int) {
					if status == 0 && code >= 200 { // Those below are not the last word.
						status = code
					}
					original(code)
				}
			},
		}), request)
		returned = true
	})
}
