// SPDX-License-Identifier: Apache-2.0

// Command node runs a real Kubernetes of one node on this machine, for tests that need a kubelet and pods:
//
//	go -C hack/node run . up
//	export KUBECONFIG="$(go -C hack/node run . kubeconfig)"
//	go -C hack/node run . load IMAGE.tar
//	go -C hack/node run . down
//
// The node is one process with its own pid, mount, network, UTS, IPC and cgroup namespaces, in cgroups of its own, and
// etcd, the control plane, containerd, kubelet and kube-proxy below it. The kernel ends all of them, and every pod, with
// that process; nothing of the node listens or is mounted outside of its namespaces but one network link, which this
// machine alone can reach.
//
// It needs root, Linux with cgroup v1, and Debian's packages of runc and the CNI plugins; docs/node.md has the details.
// Kubernetes is built from the versions in this module's go.mod, its API server by hack/controlplane.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

const (
	exitFailure = 1
	exitUsage   = 2
)

// errUsage is the error of a command line that asks for nothing that there is. Its reason has been printed.
var errUsage = errors.New("see -h")

// A command is one of the words after the program's name.
type command struct {
	name, args, about string
	run               func(ctx context.Context, l layout, args []string, stdout io.Writer) error
}

// commands lists what this program does, in the order of -h.
func commands() []command {
	return []command{
		{"up", "[FLAGS]", "start the node, or say that it runs; up -h lists the flags", runUp},
		{"down", "", "stop it and remove what it had, after any failure too", runDown},
		{"status", "", "say whether it runs, and whether it is ready", runStatus},
		{"kubeconfig", "", "print the path of the kubeconfig of its administrator", runKubeconfig},
		{"load", "IMAGE.tar...", "import images from archives of docker or OCI", runLoad},
		{"image", "[FLAGS] PROGRAM...", "write an archive with an image of static programs; image -h lists the flags", runImage},
		{"enter", "COMMAND...", "run a command inside of the node", runEnter},
		{"build", "", "build or find the programs that up needs, and print their directory", runBuild},
		{"prep", "", "install the packages that up needs", runPrep},
	}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == initCommand {
		os.Exit(initMain())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	all := commands()
	i := -1
	if len(args) > 0 {
		i = slices.IndexFunc(all, func(c command) bool { return c.name == args[0] })
	}
	if i < 0 {
		usage(stderr, all)
		if len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
			return 0
		}
		return exitUsage
	}
	l, err := newLayout()
	if err == nil {
		err = all[i].run(ctx, l, args[1:], stdout)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return exitUsage
	}
	_, _ = fmt.Fprintf(stderr, "node: %v\n", err)
	return exitFailure
}

// usage prints the commands.
func usage(w io.Writer, all []command) {
	var b strings.Builder
	b.WriteString("Usage: go -C hack/node run . COMMAND\n\n")
	for _, c := range all {
		fmt.Fprintf(&b, "  %-24s %s\n", strings.TrimSpace(c.name+" "+c.args), c.about)
	}
	_, _ = io.WriteString(w, b.String())
}

// note tells a person what goes on. Results go to standard output, notes do not.
func note(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, "node: "+format+"\n", args...)
}

// parse parses the flags of a command.
func parse(fs *flag.FlagSet, args []string) error {
	fs.SetOutput(os.Stderr)
	err := fs.Parse(args)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		return errUsage
	}
	return err
}
