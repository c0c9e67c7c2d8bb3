// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"fmt"
)

// ErrNoBackend says that nothing can own a key: the ring, or the view of it, has no point.
var ErrNoBackend = errors.New("no backend: the ring or view has no points")

// ErrEmptySlot is returned by [Open] for the marker that an unused slot holds (see [EmptySlot]).
var ErrEmptySlot = errors.New("the slot is empty: it holds the marker, not a snapshot")

// ConfigError says which part of a [Config] cannot be used.
type ConfigError struct {
	// Field is the path of the offending value within Config, such as "backends[3].weight".
	Field string
	// Value is what was given, as text.
	Value string
	// Reason says what is wrong with it and, where there is one, names the limit.
	Reason string
}

// Error names the field, the value and the limit.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("%s: %q: %s", e.Field, e.Value, e.Reason)
}

// DuplicateError says that two backends have the same identity and so could not be told apart on the ring.
type DuplicateError struct {
	// ID is the identity that occurs more than once.
	ID string
	// First and Second are the positions in Config.Backends.
	First, Second int
}

// Error names the identity and both positions.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("backends[%d] and backends[%d] have the same identity %q", e.First, e.Second, e.ID)
}

// TooManyPointsError says that a [Config] asks for more points than its limit allows.
type TooManyPointsError struct {
	// Points is what the Config asks for.
	Points uint64
	// Limit is what it may ask for: Config.MaxPoints or its default.
	Limit uint64
	// Weight is the sum of the weights, with V3 in its units, so that Limit / Weight is about the largest number of points for
	// each unit that fits.
	Weight uint64
}

// Error names both numbers and the largest number of points for each unit of weight that would fit.
func (e *TooManyPointsError) Error() string {
	return fmt.Sprintf("the ring would have %d points, the limit is %d: %d points for each unit of weight would fit",
		e.Points, e.Limit, e.Limit/e.Weight)
}

// DigestError says that a snapshot is not the one that was wanted.
type DigestError struct {
	// Digest is that of the snapshot, Want what it should be.
	Digest, Want string
}

// Error names both.
func (e *DigestError) Error() string {
	return fmt.Sprintf("the digest of the snapshot is %s, not %s", e.Digest, e.Want)
}

// FormatError says where a snapshot is not what [Build] would have written.
type FormatError struct {
	// Field names the part of the format, as docs/snapshot-format.md does.
	Field string
	// Offset is the position of that part in the file, in bytes.
	Offset int
	// Reason says what was found and what was expected.
	Reason string
}

// Error names the field, its offset and what is wrong.
func (e *FormatError) Error() string {
	return fmt.Sprintf("snapshot: %s at byte %d: %s", e.Field, e.Offset, e.Reason)
}

func formatErrorf(field string, offset int, format string, args ...any) error {
	return &FormatError{Field: field, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}
