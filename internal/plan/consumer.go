// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/routing"
)

// Asked is what the consumers of a ring are to have: what the published routing.json says.
type Asked struct {
	// Ring is the namespace and name of the HashRing, UID its UID.
	Ring, UID               string
	Generation, LeaderEpoch int64
	// Stable and Candidate are the digests of the snapshots; Candidate is "" where there is none.
	Stable, Candidate string
}

// AskedBy returns what a routing file asks for.
func AskedBy(f routing.File) Asked {
	a := Asked{Ring: f.Ring, UID: f.UID, Generation: f.Generation, LeaderEpoch: f.LeaderEpoch, Stable: f.Stable.Digest}
	if f.Candidate != nil {
		a.Candidate = f.Candidate.Digest
	}
	return a
}

// Consumer is a pod that spec.consumers selects, and what is known of it.
type Consumer struct {
	Pod string
	// Waits says why the pod has not been asked yet, "" where it has.
	Waits string
	// Failure says why the pod could not be asked the last time, "" where it answered.
	Failure string
	// Said is what it answered last; nil where it never did.
	Said *Answer
}

// Answer is what a pod says of itself. It speaks for nobody else.
type Answer struct {
	// Datacenter is where it runs; a label value, "" where it was told none.
	Datacenter string
	// Ready says that it has a ring; the fields of Asked are those of that ring, and zero without one.
	Ready bool
	Asked
	// LoadError says why the files that it has were not taken; "" where they were.
	LoadError string
	// NotApplied says why the program beside the agent does not run what that has; "" where it does.
	NotApplied string
	// Forced is which ring it was told to use whatever the split says, "" where it was not.
	Forced string
}

// Judge returns why a consumer does not have what is asked for, and says more about it; "" where it has.
func (a Asked) Judge(c Consumer) (v1alpha1.StaleReason, string) {
	switch {
	case c.Waits != "":
		return v1alpha1.StaleNotReady, c.Waits
	case c.Failure != "":
		return v1alpha1.StaleUnreachable, c.Failure
	case c.Said == nil:
		return v1alpha1.StaleNotReady, "it has not been asked yet"
	}
	return a.judge(*c.Said)
}

func (a Asked) judge(said Answer) (v1alpha1.StaleReason, string) {
	age := cmp.Or(cmp.Compare(said.LeaderEpoch, a.LeaderEpoch), cmp.Compare(said.Generation, a.Generation))
	switch {
	case said.Ready && (said.Ring != a.Ring || said.UID != a.UID):
		return v1alpha1.StaleOtherRing, otherRing(said, a)
	case said.Ready && age == 0 && (said.Stable != a.Stable || said.Candidate != a.Candidate):
		return v1alpha1.StaleDigestMismatch, mismatch(said, a)
	case said.LoadError != "":
		return v1alpha1.StaleLoadError, said.LoadError
	case !said.Ready:
		return v1alpha1.StaleNotReady, "it has no ring yet"
	case age < 0:
		return v1alpha1.StaleOldGeneration, has(said, a)
	case age > 0:
		return v1alpha1.StaleNewerGeneration, has(said, a)
	case said.NotApplied != "":
		return v1alpha1.StaleNotApplied, said.NotApplied
	case said.Forced != "":
		return v1alpha1.StaleOverridden, "it was told to use the " + said.Forced + " ring whatever the split says"
	}
	return "", ""
}

func otherRing(said Answer, a Asked) string {
	if said.Ring == a.Ring {
		return fmt.Sprintf("it has files of HashRing %s with UID %q, not %q", said.Ring, said.UID, a.UID)
	}
	return "it has the ring of HashRing " + said.Ring
}

func mismatch(said Answer, a Asked) string {
	if said.Stable != a.Stable {
		return fmt.Sprintf("its stable ring is %s, the published one %s", orNone(said.Stable), a.Stable)
	}
	return fmt.Sprintf("its candidate is %s, the published one %s", orNone(said.Candidate), orNone(a.Candidate))
}

func orNone(digest string) string { return cmp.Or(digest, "none") }

func has(said Answer, a Asked) string {
	if said.LeaderEpoch != a.LeaderEpoch {
		return fmt.Sprintf("it has generation %d of leader epoch %d, published is %d of %d", said.Generation, said.LeaderEpoch, a.Generation, a.LeaderEpoch)
	}
	return fmt.Sprintf("it has generation %d, published is %d", said.Generation, a.Generation)
}

// acknowledgement is what is known of the consumers of a ring, and what they are asked for.
type acknowledgement struct {
	asked *Asked
	seen  *Consumers
}

// Consumers are all pods that spec.consumers selects, in the order of their names. Each of them has been asked at least once, but for
// those that have come since the first time that all had been.
type Consumers struct {
	// Invalid says why spec.consumers.selector is none; "" where it is one.
	Invalid string
	List    []Consumer
}

// Asked returns what consumers are to have once the decision is carried out; nil where nothing is published.
func (d Decision) Asked() *Asked { return d.consumers.asked }

// acknowledge finds out what the consumers are to have: what is published by this decision, or what is there already. A file that
// somebody has edited asks for nothing.
func (d *Decision) acknowledge(r *v1alpha1.HashRing, seen Observation) {
	if r.Spec.Consumers == nil {
		return
	}
	d.consumers = acknowledgement{seen: seen.Consumers}
	if d.Publication != nil && d.Wait == 0 {
		asked := AskedBy(d.Publication.File)
		d.consumers.asked = &asked
		return
	}
	if file, err := routing.Parse([]byte(seen.Routing.Text)); err == nil && seen.Routing.intact() {
		asked := AskedBy(file)
		d.consumers.asked = &asked
	}
}
