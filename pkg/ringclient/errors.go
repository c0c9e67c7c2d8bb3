// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"errors"
	"fmt"
)

var (
	// ErrNotLoaded says that a client has no ring yet, so that it cannot answer.
	ErrNotLoaded = errors.New("no ring is loaded yet")
	// ErrClosed says that a client was closed while somebody waited for its ring.
	ErrClosed = errors.New("the client is closed")
)

// Reason is why the files of a directory were not taken.
type Reason string

const (
	// ReasonMissing says that routing.json, or a file of the slot that it names, is not there.
	ReasonMissing Reason = "missing"
	// ReasonUnreadable says that a file is there and cannot be read.
	ReasonUnreadable Reason = "unreadable"
	// ReasonTooLarge says that a file, or all chunks of a snapshot together, have more bytes than their limit.
	ReasonTooLarge Reason = "toolarge"
	// ReasonRouting says that routing.json cannot be parsed, or says what this version does not know.
	ReasonRouting Reason = "routing"
	// ReasonOtherRing says that routing.json is of another HashRing than the one that is loaded, or than Options.Ring.
	ReasonOtherRing Reason = "otherring"
	// ReasonRegression says that routing.json has a lower generation than the one that is loaded.
	ReasonRegression Reason = "regression"
	// ReasonEmptySlot says that the slot that routing.json names holds the marker of an empty slot.
	ReasonEmptySlot Reason = "emptyslot"
	// ReasonDigest says that the snapshot is not the one that routing.json names: it, or a chunk of it, is truncated, corrupt,
	// or of another moment.
	ReasonDigest Reason = "digest"
	// ReasonSnapshot says that the snapshot is the one that routing.json names, and this version cannot read it.
	ReasonSnapshot Reason = "snapshot"
	// ReasonPoints says that the snapshot is a recipe of more points than Options.MaxPoints.
	ReasonPoints Reason = "points"
	// ReasonVersion says that the snapshot has another algorithm than routing.json says.
	ReasonVersion Reason = "version"
)

// Reasons returns every reason. The caller owns the slice.
func Reasons() []Reason {
	return []Reason{
		ReasonMissing, ReasonUnreadable, ReasonTooLarge, ReasonRouting, ReasonOtherRing,
		ReasonRegression, ReasonEmptySlot, ReasonDigest, ReasonSnapshot, ReasonPoints, ReasonVersion,
	}
}

// LoadError says why the files of a directory were not taken. The client keeps the ring that it has.
type LoadError struct {
	// Reason is the kind of error.
	Reason Reason
	// File is the path of the offending file, below the directory as Open got it.
	File string
	// Value is what was found, "" where there is nothing to show: a size in bytes, a digest, a generation, a name.
	Value string
	// Limit is what would have been taken: a largest size, the digest that routing.json names, a lowest generation.
	Limit string
	// Err says it in words.
	Err error
}

// Error names the file, what was found in it and what would have been taken.
func (e *LoadError) Error() string { return fmt.Sprintf("%s: %v", e.File, e.Err) }

// Unwrap returns the cause, such as a [ring.FormatError].
func (e *LoadError) Unwrap() error { return e.Err }

// OwnerCountError says that a lookup asked for fewer than one backend or for more than MaxOwners.
type OwnerCountError struct {
	// Count is how many were asked for.
	Count int
}

// Error names the count and the limit.
func (e *OwnerCountError) Error() string {
	return fmt.Sprintf("%d backends were asked for, the limit is 1 to %d", e.Count, MaxOwners)
}
