// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/ringwright/ringwright/internal/agentapi"
)

// The limits of an answer: that of an agent has about 2 KiB.
const (
	// MaxAnswerBytes is how large the body may be.
	MaxAnswerBytes = 64 << 10
	// MaxHeaderBytes is how large the rest may be.
	MaxHeaderBytes = 8 << 10
)

// The reasons why a pod could not be asked, as the metrics have them.
const (
	failedAddress    = "address"
	failedTimeout    = "timeout"
	failedRefused    = "refused"
	failedConnection = "connection"
	failedStatus     = "status"
	failedSize       = "size"
	failedContent    = "content"
)

// Failure says why a pod could not be asked, or did not answer as an agent does. Its text is the same each time for the same
// cause.
type Failure struct {
	// Reason is one of a few words.
	Reason string
	Text   string
}

// Error returns the text.
func (f *Failure) Error() string { return f.Text }

func failf(reason, format string, args ...any) *Failure {
	return &Failure{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// Asker asks pods by HTTP. It is safe for concurrent use.
type Asker struct {
	transport *http.Transport
	// Loopback has addresses of this host asked, as tests need it. In a cluster no pod has one, and whatever listens there is the
	// operator itself.
	Loopback bool
}

// NewAsker returns an asker that keeps no connection: pods are asked so rarely that thousands of them would be idle.
func NewAsker() *Asker {
	return &Asker{transport: &http.Transport{
		Proxy:                  nil, // Not that of the environment: pods are in the cluster.
		DialContext:            (&net.Dialer{KeepAlive: -1}).DialContext,
		DisableKeepAlives:      true,
		DisableCompression:     true, // A small answer must not become a large one.
		MaxResponseHeaderBytes: MaxHeaderBytes,
	}}
}

// Ask asks a pod for its status. It returns an error of type [*Failure], or that of ctx where that has ended.
func (a *Asker) Ask(ctx context.Context, ip string, port int32, timeout time.Duration) (Answer, error) {
	address, err := netip.ParseAddr(ip)
	if err != nil || !a.isPod(address.Unmap()) {
		return Answer{}, failf(failedAddress, "%.64q is not the address of a pod", ip)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	body, err := a.get(limited, "http://"+netip.AddrPortFrom(address.Unmap(), uint16(port)).String()+agentapi.StatusPath)
	if ctx.Err() != nil {
		return Answer{}, ctx.Err()
	}
	if err != nil {
		return Answer{}, failureOf(err, timeout)
	}
	return parse(body)
}

// broadcast is every host of the network at hand.
var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// isPod says whether an address can be that of a pod. Others, such as that of the metadata service of a cloud, are not asked. One of
// IPv4 that is written as one of IPv6 has to be unmapped.
func (a *Asker) isPod(address netip.Addr) bool {
	switch {
	case address.Zone() != "", address.IsUnspecified(), address.IsMulticast(), address.IsLinkLocalUnicast(), address == broadcast:
		return false
	default:
		return a.Loopback || !address.IsLoopback()
	}
}

func (a *Asker) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "ringwright-operator")
	response, err := a.transport.RoundTrip(request) // It follows no redirects.
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, failf(failedStatus, "it answers with HTTP status %d", response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswerBytes+1))
	if err != nil {
		return nil, err
	}
	if len(body) > MaxAnswerBytes {
		return nil, failf(failedSize, "its answer has more than %d bytes", MaxAnswerBytes)
	}
	return body, nil
}

// failureOf names the cause. The text of an error would not do: it has ports in it that are others each time, and what the pod
// sent.
func failureOf(err error, timeout time.Duration) error {
	var failure *Failure
	var errno syscall.Errno
	var slow interface{ Timeout() bool }
	switch {
	case errors.As(err, &failure):
		return failure
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return failf(failedTimeout, "no answer within %v", timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return failf(failedRefused, "the connection was refused")
	case errors.As(err, &errno):
		return failf(failedConnection, "the connection failed: %v", errno)
	default:
		return failf(failedConnection, "the connection broke off, or nobody speaks HTTP there")
	}
}
