// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

const (
	// DefaultPollInterval is how often the directory is read where Options.PollInterval is zero. File events make a
	// client faster than that; the poll is for the events that got lost.
	DefaultPollInterval = 30 * time.Second
	// MinPollInterval is the smallest Options.PollInterval.
	MinPollInterval = 10 * time.Millisecond
	// DefaultMaxSnapshotBytes is the largest snapshot that is read where Options.MaxSnapshotBytes is zero.
	DefaultMaxSnapshotBytes = 512 << 20
	// coldPollInterval is the longest poll interval of a client that has no ring yet. A directory that does not exist
	// cannot be watched.
	coldPollInterval = time.Second
	// settleTime is how long a client waits after an event before it reads, so that the events of one change cause one
	// load. It counts from the first event: a directory that never rests cannot put a load off.
	settleTime = 10 * time.Millisecond
)

// Options say how a [Client] reads its directory. The zero value is useful.
type Options struct {
	// WaitForRing makes Open succeed without valid files: the client keeps trying in the background, lookups fail with
	// ErrNotLoaded until it succeeds, and Client.Wait waits for it. Without WaitForRing, Open fails.
	WaitForRing bool
	// PollInterval is how often the directory is read without an event, at least MinPollInterval; 0 is
	// DefaultPollInterval. While no ring is loaded it is never longer than a second.
	PollInterval time.Duration
	// PollOnly leaves the file watch out, for file systems that send no events.
	PollOnly bool
	// MaxSnapshotBytes is the largest snapshot that is read, at least 1; 0 is DefaultMaxSnapshotBytes.
	MaxSnapshotBytes int64
	// MaxPoints is how many points are built for a snapshot that is a recipe, at most ring.HardMaxPoints; 0 is
	// ring.DefaultMaxPoints. A ring of more is refused: building it would take more memory than the program is meant to have.
	MaxPoints uint64
	// Datacenter is where the program runs, by which a split says how many keys go to the candidate: at most
	// routing.MaxDatacenterBytes, and not routing.AnyDatacenter. "" is one that has no entry of its own.
	Datacenter string
	// Ring is the namespace and name of the HashRing whose files are taken, "cdn/edge-cache"; "" is that of the first that are read.
	Ring string
	// Force is what is used instead of the split, from the start; see [Client.SetForce].
	Force Force
	// Logger receives a line for every ring that is loaded and for every new reason why none could be. Nil logs nothing.
	Logger *slog.Logger
}

// OptionError says which of the [Options] cannot be used.
type OptionError struct {
	// Field is the name of the option, Value what was given, Limit what would have been accepted.
	Field, Value, Limit string
}

// Error names the option, the value and the limit.
func (e *OptionError) Error() string {
	return fmt.Sprintf("option %s is %s, not %s", e.Field, e.Value, e.Limit)
}

// complete returns the options with defaults in place of zero values.
func (o Options) complete() (Options, error) {
	o.PollInterval = cmp.Or(o.PollInterval, DefaultPollInterval)
	o.MaxSnapshotBytes = cmp.Or(o.MaxSnapshotBytes, DefaultMaxSnapshotBytes)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.PollInterval < MinPollInterval:
		return o, &OptionError{"PollInterval", o.PollInterval.String(), fmt.Sprintf("at least %v", MinPollInterval)}
	case o.MaxPoints > ring.HardMaxPoints:
		return o, &OptionError{"MaxPoints", fmt.Sprint(o.MaxPoints), fmt.Sprintf("at most %d", ring.HardMaxPoints)}
	case o.MaxSnapshotBytes < 0:
		return o, &OptionError{"MaxSnapshotBytes", fmt.Sprint(o.MaxSnapshotBytes), "at least 1"}
	case len(o.Datacenter) > routing.MaxDatacenterBytes:
		return o, &OptionError{"Datacenter", fmt.Sprintf("%q", o.Datacenter), fmt.Sprintf("at most %d bytes", routing.MaxDatacenterBytes)}
	case o.Datacenter == routing.AnyDatacenter:
		return o, &OptionError{"Datacenter", fmt.Sprintf("%q", o.Datacenter), "the name of one"}
	case o.Ring != "" && routing.CheckRingName(o.Ring) != nil:
		return o, &OptionError{"Ring", fmt.Sprintf("%.80q", o.Ring), "the namespace and name of a HashRing, or \"\""}
	case o.Force > ForceCandidate:
		return o, &OptionError{"Force", fmt.Sprint(uint8(o.Force)), "ForceNone, ForceStable or ForceCandidate"}
	}
	return o, nil
}
