// SPDX-License-Identifier: Apache-2.0

package loadreport

import (
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// Store keeps the reports of the policies that this replica owns. Its methods may be called concurrently.
type Store struct{}

// NewStore returns an empty one. What it refuses is counted in metrics, which can be nil.
func NewStore(limits Limits, metrics *Metrics) *Store { return &Store{} }

// SetPolicy replaces what was set. What was reported of endpoints and sources that are gone is forgotten.
func (s *Store) SetPolicy(spec PolicySpec) {}

// DeletePolicy forgets a policy and all that was reported of it.
func (s *Store) DeletePolicy(policy string) {}

// Add takes reports, and says how many were refused, by reason; nil where none was. Endpoint is an ID, or "address:port".
func (s *Store) Add(now time.Time, reports ...Report) (refused map[Reason]int) { return nil }

// Collect returns what is known of each endpoint that has a fresh report, in the order of the IDs: the mean over all reports that ended after
// since. It forgets reports that ended longer ago than twice the time from since to now.
func (s *Store) Collect(policy string, now, since time.Time) []Reading { return nil }

// Fresh says of how many endpoints each source of a policy has a fresh report, whether it counts or that of an earlier source does.
func (s *Store) Fresh(policy string, now time.Time) map[v1alpha1.LoadSourceType]int { return nil }

// SetSourceError takes note of what is wrong with a source, "" where nothing is.
func (s *Store) SetSourceError(policy string, source v1alpha1.LoadSourceType, now time.Time, message string) {
}

// SourceErrors returns what is wrong with the sources of a policy.
func (s *Store) SourceErrors(policy string) map[v1alpha1.LoadSourceType]SourceError { return nil }
