// SPDX-License-Identifier: Apache-2.0

package loadreport

import "fmt"

// Reason says why a report was refused, in one word: it is a label of a metric.
type Reason string

// The reasons.
const (
	// NoFigure is a report in which every figure is NaN.
	NoFigure Reason = "NoFigure"
	// Negative is a figure below 0.
	Negative Reason = "Negative"
	// NotFinite is a figure that is infinite, or NaN where one is needed.
	NotFinite Reason = "NotFinite"
	// TooLarge is a figure above its limit.
	TooLarge Reason = "TooLarge"
	// ErrorsAboveRequests is a report with more errors than requests.
	ErrorsAboveRequests Reason = "ErrorsAboveRequests"
	// Future is a report that ends more than MaxAhead from now.
	Future Reason = "Future"
	// Stale is a report that is too old to count.
	Stale Reason = "Stale"
	// BadWindow is a window that is negative, above MaxWindow, or 0 where requests are counted.
	BadWindow Reason = "BadWindow"
	// BadName is a policy, endpoint or reporter whose name is missing or too long.
	BadName Reason = "BadName"
	// UnknownSource is a source that the policy does not have.
	UnknownSource Reason = "UnknownSource"
	// UnknownPolicy is a policy that this replica does not have.
	UnknownPolicy Reason = "UnknownPolicy"
	// UnknownEndpoint is an endpoint that the policy does not have.
	UnknownEndpoint Reason = "UnknownEndpoint"
	// Replayed is a report that does not end after the reporter's last one.
	Replayed Reason = "Replayed"
	// TooOften is a report that ends less than MinSpacing after the reporter's last one.
	TooOften Reason = "TooOften"
	// TooManyReporters is a reporter beyond those that an endpoint, a policy or the store has room for.
	TooManyReporters Reason = "TooManyReporters"

	// Malformed is what is no report at all. The gateway refuses it.
	Malformed Reason = "Malformed"
	// Unauthenticated is a report without a token that is valid.
	Unauthenticated Reason = "Unauthenticated"
	// Overflow is a report that was dropped because the owner of its policy did not take those before it.
	Overflow Reason = "Overflow"
	// NoOwner is a report of a policy that no replica has.
	NoOwner Reason = "NoOwner"
)

// Error is why a report was refused.
type Error struct {
	Reason Reason
	// Field is the figure, as in OrcaLoadReport where it is one of that, and Value what it was.
	Field, Value string
	// Limit is what it has to be.
	Limit string
}

// Error names the field, the value and the limit.
func (e *Error) Error() string {
	return fmt.Sprintf("%s must be %s; got %s", e.Field, e.Limit, e.Value)
}

func refuse(reason Reason, field string, value any, limit string) error {
	return &Error{Reason: reason, Field: field, Value: fmt.Sprint(value), Limit: limit}
}
