// SPDX-License-Identifier: Apache-2.0

package loadsource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	orcaservicev3 "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
	"github.com/ringwright/ringwright/internal/orca"
	"github.com/ringwright/ringwright/internal/promclient"
)

const (
	connectTimeout = 5 * time.Second
	// maxPause is the longest pause between attempts to open a stream, and noServicePause that after a server said that it has no such service.
	maxPause       = time.Minute
	noServicePause = 5 * time.Minute
	// steady is from how many reports on their interval is known.
	steady = 3
)

// errSilent is that of a stream that says nothing any more.
var errSilent = errors.New("it sends no reports")

// follow keeps a stream to one endpoint open.
func (o *ORCA) follow(ctx context.Context, e loadreport.Endpoint, address netip.AddrPort) {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = time.Second, maxPause
	for ctx.Err() == nil {
		got, err := o.place(ctx, e, address)
		if ctx.Err() != nil {
			return
		}
		if got { // It worked before: begin with short pauses again.
			pauses.Reset()
		}
		pause := pauses.NextBackOff()
		if status.Code(err) == codes.Unimplemented {
			pause = noServicePause
		}
		o.fail(e, reason(err))
		select {
		case <-ctx.Done():
			return
		case <-o.Clock.After(pause):
		}
	}
}

// reason is what people are told.
func reason(err error) string {
	switch s, ok := status.FromError(err); {
	case !ok:
		return err.Error()
	case s.Code() == codes.Unimplemented:
		return "it has no service xds.service.orca.v3.OpenRcaService"
	default:
		return fmt.Sprintf("%s: %s", s.Code(), s.Message())
	}
}

// place waits for a place among the streams, and reads one. It says whether there was a report.
func (o *ORCA) place(ctx context.Context, e loadreport.Endpoint, address netip.AddrPort) (got bool, err error) {
	select {
	case o.streams.places <- struct{}{}:
	default:
		o.fail(e, fmt.Sprintf("no stream is free: the limit of this balancer is %d", cap(o.streams.places)))
		select {
		case o.streams.places <- struct{}{}:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	defer func() { <-o.streams.places }()
	return o.read(ctx, e, address)
}

// dial returns a connection to one address, and to no other, whatever names and proxies say. It has no keepalive pings: servers have the right
// to take them for an attack.
func (o *ORCA) dial(address netip.AddrPort) (*grpc.ClientConn, error) {
	dialer := &net.Dialer{Timeout: connectTimeout, Control: func(_, to string, _ syscall.RawConn) error {
		return promclient.MayDial(to, o.AllowLoopback)
	}}
	return grpc.NewClient("passthrough:///"+address.String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", to) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(orca.MaxBytes)),
		grpc.WithReadBufferSize(4<<10), grpc.WithWriteBufferSize(4<<10),
		grpc.WithUserAgent("ringwright-balancer"),
	)
}

// read opens a stream and reports what it says until it ends.
func (o *ORCA) read(ctx context.Context, e loadreport.Endpoint, address netip.AddrPort) (got bool, err error) {
	conn, err := o.dial(address)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := o.Clock.AfterFunc(o.patience(), func() { cancel(errSilent) })
	defer watchdog.Stop()
	stream, err := orcaservicev3.NewOpenRcaServiceClient(conn).StreamCoreMetrics(ctx,
		&orcaservicev3.OrcaLoadReportRequest{ReportInterval: durationpb.New(o.Interval)})
	if err != nil {
		return false, err
	}
	last := time.Time{}
	for n := 1; ; n++ {
		report, err := stream.Recv()
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
				err = cause
			}
			return got, err
		}
		got = true
		watchdog.Reset(o.patience())
		now := o.Clock.Now()
		window := o.Interval
		if since := now.Sub(last); !last.IsZero() && since > 0 && since <= loadreport.MaxWindow {
			window = since
		}
		last = now
		r := o.report(e.ID, v1alpha1.SourceORCA, now, window)
		if err := orca.Read(report, window, o.CustomMetric, &r); err != nil {
			o.fail(e, err.Error())
			continue
		}
		if r.Empty() {
			o.fail(e, orca.Missing(o.CustomMetric).Error())
			continue
		}
		o.Report(r)
		o.fail(e, o.slow(n, window))
	}
}

// slow says that reports come less often than they were asked for.
func (o *ORCA) slow(n int, window time.Duration) string {
	if n < steady || window <= 2*o.Interval {
		return ""
	}
	return fmt.Sprintf("a report every %s, though every %s was asked for: let its service allow that, or raise the source's interval", window.Round(time.Second), o.Interval)
}
