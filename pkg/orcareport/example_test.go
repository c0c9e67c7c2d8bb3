// SPDX-License-Identifier: Apache-2.0

package orcareport_test

import (
	"context"
	"log"
	"net"
	"net/http"

	"google.golang.org/grpc"

	"github.com/ringwright/ringwright/pkg/orcareport"
)

// A gRPC server tells its clients and the balancer how loaded it is.
func Example() {
	reporter := orcareport.New(orcareport.Options{})
	server := grpc.NewServer(reporter.ServerOptions()...) // In the trailers of calls.
	reporter.Register(server)                             // And out of band.
	// Register the services, and then:
	listener, err := net.Listen("tcp", ":8080")
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(server.Serve(listener))
}

// A server of HTTP pushes its load. The token is that of a projected volume, see docs/weights-reports.md.
func ExampleReporter_Push() {
	reporter := orcareport.New(orcareport.Options{})
	go func() {
		err := reporter.Push(context.Background(), "http://ringwright-balancer.ringwright-system.svc:18001", "/var/run/secrets/ringwright/token")
		log.Print(err)
	}()
	log.Fatal(http.ListenAndServe(":8080", reporter.Handler(http.NotFoundHandler())))
}
