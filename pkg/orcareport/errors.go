// SPDX-License-Identifier: Apache-2.0

package orcareport

import (
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
)

// IsError says that a code is the server's failure and not the caller's: Unknown, DeadlineExceeded, ResourceExhausted, Unimplemented, Internal,
// Unavailable and DataLoss.
func IsError(code codes.Code) bool {
	switch code {
	case codes.Unknown, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Unimplemented, codes.Internal, codes.Unavailable, codes.DataLoss:
		return true
	}
	return false
}

// IsHTTPError says that a status is the server's failure: 429, which says that it is overloaded, and 500 to 599.
func IsHTTPError(status int) bool {
	return status == http.StatusTooManyRequests || status >= 500 && status < 600
}

// Skip says that a method is of health checks, reflection, channelz, or the reports themselves.
func Skip(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.") || strings.HasPrefix(method, "/grpc.reflection.") ||
		strings.HasPrefix(method, "/grpc.channelz.") || strings.HasPrefix(method, "/xds.service.orca.v3.")
}
