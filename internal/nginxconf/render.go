// SPDX-License-Identifier: Apache-2.0

package nginxconf

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// Moment is what is written: rings of one state.
type Moment struct {
	// Ring is the namespace and name of the HashRing, Generation that of the routing file.
	Ring       string
	Generation int64

	Stable ringclient.Loaded
	// Candidate is nil where there is none.
	Candidate *ringclient.Loaded
	// BasisPoints is how many of routing.MaxBasisPoints buckets the candidate answers.
	BasisPoints int
}

// momentOf returns what a state has loaded, with what was forced.
func momentOf(state *ringclient.State) Moment {
	m := Moment{Ring: state.RingName(), Generation: state.Generation(), Stable: state.Stable(), BasisPoints: state.BasisPoints()}
	if candidate, found := state.Candidate(); found {
		m.Candidate = &candidate
	}
	switch state.Forced() {
	case ringclient.ForceStable:
		m.BasisPoints = 0
	case ringclient.ForceCandidate:
		m.BasisPoints = routing.MaxBasisPoints
	}
	return m
}

// Render returns the upstream blocks of a moment, and what of it NGINX does not follow, "" for nothing. Servers stand in ring
// order, which decides about tied points here and there. Equal moments give equal bytes.
//
// It refuses what NGINX would place otherwise: algorithms but V1, names, IPv6 addresses unless as in NGINX's configuration,
// and backends that are dialled at another address than they are placed by.
func (c Config) Render(m Moment) (content []byte, lag string, err error) {
	active, other := m.Stable, (*ringclient.Loaded)(nil)
	switch {
	case m.Candidate == nil || m.BasisPoints == 0:
	case m.BasisPoints == routing.MaxBasisPoints:
		active, other = *m.Candidate, &m.Stable
	default:
		lag = fmt.Sprintf("%d of %d keys are to go to the candidate, which NGINX cannot do: it stays on the stable ring until all go there",
			m.BasisPoints, routing.MaxBasisPoints)
	}
	if err := checkRing(active); err != nil {
		return nil, "", err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Written by the agent of Ringwright, which overwrites changes.\n# ring %q, generation %d, %s revision %d, %s\n",
		m.Ring, m.Generation, active.Role, active.Revision, active.Digest)
	for _, features := range append([]string{""}, c.Features...) {
		var names []string
		if features != "" {
			names = strings.Split(features, ",")
		}
		view, err := viewOf(active, other, names)
		if err == nil && view.loaded.Ring != active.Ring {
			err = checkRing(view.loaded)
		}
		if err != nil {
			return nil, "", err
		}
		c.block(&out, strings.Join(append([]string{c.Upstream}, names...), "."), view)
	}
	return out.Bytes(), lag, nil
}

// checkRing says why NGINX would not place as the ring does.
func checkRing(loaded ringclient.Loaded) error {
	r := loaded.Ring
	switch version := r.Algorithm().Version; {
	case version != ring.V1:
		return fmt.Errorf("the algorithm is %v: NGINX places as V1 does", version)
	case r.Identity() == ring.IdentityName:
		return errors.New("the identity is Name: NGINX places by host and port; use NGINX or Address")
	}
	for i := range r.Len() {
		id := r.ID(i)
		if address := loaded.Address(i); address != id && address != id+":80" {
			return fmt.Errorf("backend %s is dialled at %s, and NGINX dials what it places by", id, address)
		}
		if r.Identity() != ring.IdentityAddress {
			continue
		}
		if at, err := netip.ParseAddrPort(id); err != nil || !at.Addr().Is4() {
			return fmt.Errorf("backend %s has an IPv6 address under the identity Address: NGINX places IPv6 by another text; use the identity NGINX", id)
		}
	}
	return nil
}

// loadedView is a view with the ring that it is of.
type loadedView struct {
	*ring.View
	loaded ringclient.Loaded
}

// viewOf returns the view of the active ring. As readers do, it takes that of the other ring, where there is one, if the active
// one has no backend for it or does not declare a feature.
func viewOf(active ringclient.Loaded, other *ringclient.Loaded, names []string) (loadedView, error) {
	view, err := active.Ring.TransientView(names...)
	if other != nil && (err != nil || view.Len() == 0) {
		view, err = other.Ring.TransientView(names...)
		active = *other
	}
	return loadedView{view, active}, err
}

// block writes the upstream block of a view.
func (c Config) block(out *bytes.Buffer, name string, view loadedView) {
	r := view.loaded.Ring
	down := map[int]bool{}
	for i := range r.Len() {
		if view.Has(i) && view.loaded.IsDown(i) {
			down[i] = true
		}
	}
	if len(down) == view.Len() { // Readers then try all of them: that nobody looks any more is more likely.
		clear(down)
	}
	// At a point that two backends share NGINX knows the first one only. Where that is down, it goes on to the next point, and
	// not to the second one; without the server it knows the second one.
	leaveOut := len(down) > 0 && r.Stats().Collisions > 0
	fmt.Fprintf(out, "upstream %s {\n    hash \"%s\" consistent;\n", name, c.Hash)
	for i := range r.Len() {
		id := r.ID(i)
		switch {
		case down[i] && leaveOut:
			fmt.Fprintf(out, "    # server %s weight=%d; is down\n", id, r.Weight(i))
		case down[i]:
			fmt.Fprintf(out, "    server %s weight=%d down;\n", id, r.Weight(i))
		case view.Has(i):
			fmt.Fprintf(out, "    server %s weight=%d;\n", id, r.Weight(i))
		case r.Weight(i) == 0:
			fmt.Fprintf(out, "    # server %s; is drained\n", id)
		}
	}
	if view.Len() == 0 { // NGINX takes no upstream without a server.
		out.WriteString("    server 127.0.0.1:1 down; # nobody: no backend has the features and a weight\n")
	}
	out.WriteString("}\n")
}

// directives returns the lines that mean something to NGINX.
func directives(content []byte) []byte {
	lines := slices.DeleteFunc(bytes.Split(content, []byte("\n")), func(line []byte) bool {
		line = bytes.TrimSpace(line)
		return len(line) == 0 || line[0] == '#'
	})
	return bytes.Join(lines, []byte("\n"))
}
