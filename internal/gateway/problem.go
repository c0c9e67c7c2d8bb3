// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
)

// kind says what is wrong with a call, as both protocols have it.
type kind struct {
	status int
	code   codes.Code
}

var (
	unauthenticated = kind{http.StatusUnauthorized, codes.Unauthenticated}
	invalid         = kind{http.StatusBadRequest, codes.InvalidArgument}
	tooLarge        = kind{http.StatusRequestEntityTooLarge, codes.InvalidArgument}
	wrongType       = kind{http.StatusUnsupportedMediaType, codes.InvalidArgument}
	notFound        = kind{http.StatusNotFound, codes.NotFound}
	tooOften        = kind{http.StatusTooManyRequests, codes.ResourceExhausted}
)

// problem is why a call fails.
type problem struct {
	kind
	reason loadreport.Reason
	text   string
	// retryAfter is when it may succeed; 0 where the caller has to change something.
	retryAfter time.Duration
}

// Error is what the caller is told.
func (p *problem) Error() string { return p.text }

// refuse counts a report that is refused.
func (g *Gateway) refuse(k kind, reason loadreport.Reason, text string) *problem {
	g.options.Metrics.Refused(v1alpha1.SourcePush, reason, 1)
	return &problem{kind: k, reason: reason, text: text}
}

// refusedBy returns the problem that an error is.
func (g *Gateway) refusedBy(err error) *problem {
	var p *problem
	var refused *loadreport.Error
	switch {
	case errors.As(err, &p):
		return g.refuse(p.kind, p.reason, p.text)
	case errors.As(err, &refused):
		return g.refuse(invalid, refused.Reason, refused.Error())
	}
	return g.refuse(invalid, loadreport.Malformed, err.Error())
}
