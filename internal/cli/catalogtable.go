// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"strconv"
)

func (r *CatalogReport) print(out io.Writer) {
	printf(out, "%s: %s, %s", r.Source, plural(len(r.Rings), "ring", "rings"),
		plural(len(r.Tombstones)+len(r.WeightTombstones), "tombstone", "tombstones"))
	if n := len(r.WeightPolicies); n > 0 {
		printf(out, ", %s", plural(n, "WeightPolicy", "WeightPolicies"))
	}
	printf(out, "\n\n")
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
	r.printWeights(out)
	if len(r.Copies) > 0 {
		printf(out, "\nCOPIES\n")
		for _, name := range r.Copies {
			printf(out, "%s\n", name)
		}
	}
}

func (r *CatalogReport) printWeights(out io.Writer) {
	if len(r.WeightPolicies) > 0 {
		printf(out, "\n")
		rows(out, func(w io.Writer) {
			printf(w, "NAMESPACE\tWEIGHTPOLICY\tTARGET\tENDPOINTS\tSTATE\n")
			for _, p := range r.WeightPolicies {
				printf(w, "%s\t%s\t%s\t%s\t%s\n", p.Namespace, p.Name, p.Target, numberOrDash(int64(p.Endpoints)), dash(p.State))
			}
		})
	}
	if len(r.WeightTombstones) == 0 {
		return
	}
	printf(out, "\n")
	rows(out, func(w io.Writer) {
		printf(w, "NAMESPACE\tWEIGHT TOMBSTONE\tRING\tVERSION\tSETS\tUNTIL\n")
		for _, t := range r.WeightTombstones {
			printf(w, "%s\t%s\t%s\t%d\t%d\t%s\n", t.Namespace, t.Name, dash(t.Ring), t.Version, t.Sets, dash(t.Until))
		}
	})
	printf(out, "note: a WeightPolicy of that name that is made again until then goes on with these weights\n")
}

// numberOrDash shows 0, which stands for what is not there, as such.
func numberOrDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}
