// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"strconv"
)

func (r *CatalogReport) print(out io.Writer) {
	printf(out, "%s: %s, %s\n\n", r.Source, plural(len(r.Rings), "ring", "rings"), plural(len(r.Tombstones), "tombstone", "tombstones"))
	rows(out, func(w io.Writer) {
		printf(w, "NAMESPACE\tNAME\tREVISION\tDIGEST\tPOINTS\tBYTES\tALGORITHM\tSTATE\n")
		for _, ring := range r.Rings {
			printf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", ring.Namespace, ring.Name, numberOrDash(ring.Revision), dash(shortDigest(ring.Digest)),
				numberOrDash(ring.Points), numberOrDash(ring.Bytes), dash(ring.Algorithm), dash(ring.State))
		}
	})
	if len(r.Tombstones) > 0 {
		printf(out, "\n")
		rows(out, func(w io.Writer) {
			printf(w, "NAMESPACE\tTOMBSTONE\tREVISION\tDIGEST\tUNTIL\n")
			for _, t := range r.Tombstones {
				printf(w, "%s\t%s\t%s\t%s\t%s\n", t.Namespace, t.Name, numberOrDash(t.Revision), dash(shortDigest(t.Digest)), t.Until)
			}
		})
	}
	if len(r.Copies) > 0 {
		printf(out, "\nCOPIES\n")
		for _, name := range r.Copies {
			printf(out, "%s\n", name)
		}
	}
}

// numberOrDash shows 0, which stands for what is not there, as such.
func numberOrDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}
