// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"errors"
	"io/fs"
	"strconv"

	"github.com/ringwright/ringwright/pkg/routing"
)

// readError says as a LoadError why a file could not be read; nil where it could.
func readError(shown string, err error) error {
	var tooLarge *routing.FileTooLargeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &tooLarge):
		return &LoadError{
			Reason: ReasonTooLarge, File: shown, Err: err,
			Value: strconv.FormatInt(tooLarge.Size, 10), Limit: strconv.FormatInt(tooLarge.Limit, 10),
		}
	case errors.Is(err, fs.ErrNotExist):
		return &LoadError{Reason: ReasonMissing, File: shown, Err: fs.ErrNotExist}
	case errors.Is(err, routing.ErrEmptyChunk):
		return &LoadError{Reason: ReasonDigest, File: shown, Err: err}
	default:
		return &LoadError{Reason: ReasonUnreadable, File: shown, Err: err}
	}
}
