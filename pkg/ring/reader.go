// SPDX-License-Identifier: Apache-2.0

package ring

// reader takes pieces from the front of a section.
type reader struct {
	d     *decoder
	field string
	span
}

// take returns the next n bytes.
func (r *reader) take(n uint64) ([]byte, error) {
	if n > uint64(r.end-r.start) {
		return nil, formatErrorf(r.field, r.start, "%d bytes are wanted, %d are left", n, r.end-r.start)
	}
	piece := r.d.data[r.start : r.start+int(n) : r.start+int(n)]
	r.start += int(n)
	return piece, nil
}

// column takes n numbers of width bytes.
func (r *reader) column(width uint8, n int) (column, error) {
	data, err := r.take(uint64(width) * uint64(n))
	return column{data: data, width: width}, err
}

// texts takes a column of ends, when it does not stand elsewhere, and the blob.
func (r *reader) texts(ends column, n int, blobBytes uint32) (texts, error) {
	blob, err := r.take(uint64(blobBytes))
	if err != nil {
		return texts{}, err
	}
	last := uint32(0)
	for i := range n {
		if ends.at(i) <= last && (i > 0 || ends.at(i) == 0) {
			return texts{}, formatErrorf(r.field, r.start, "text %d is empty or ends before it starts", i)
		}
		last = ends.at(i)
	}
	if last != blobBytes {
		return texts{}, formatErrorf(r.field, r.start, "the texts end at %d of %d bytes", last, blobBytes)
	}
	return texts{blob: string(blob), ends: ends}, nil
}

func (r *reader) finish() error {
	if r.start != r.end {
		return formatErrorf(r.field, r.start, "%d bytes are left over", r.end-r.start)
	}
	return nil
}
