// SPDX-License-Identifier: Apache-2.0

package ring

import "encoding/binary"

// readViews checks the declared views of a V3 ring and their trims.
func (d *decoder) readViews() error {
	if err := d.readDeclaredViews(); err != nil || d.ring.algorithm.Version != V3 {
		return err
	}
	return d.checkTrims(d.sections[kindViews].end)
}

// readDeclaredViews reads the views without looking at the points that they trim.
func (d *decoder) readDeclaredViews() error {
	if d.ring.algorithm.Version != V3 {
		return nil
	}
	r := d.section(kindViews, "views")
	head, err := r.take(4)
	if err != nil {
		return err
	}
	count := binary.LittleEndian.Uint32(head)
	if count < 1 || count > MaxViews+1 {
		return formatErrorf("views", r.start-4, "%d is not within 1 to %d", count, MaxViews+1)
	}
	for k := range int(count) {
		v, err := d.readView(r)
		if err != nil {
			return err
		}
		if k == 0 && v.features != 0 || k > 0 && v.features <= d.ring.views[k-1].features {
			return formatErrorf("view features", r.start, "view %d has the set %#x, which is not the next one", k, v.features)
		}
		d.ring.views = append(d.ring.views, v)
	}
	return r.finish()
}

func (d *decoder) readView(r *reader) (declaredView, error) {
	const head = 16
	at := r.start
	h, err := r.take(head)
	if err != nil {
		return declaredView{}, err
	}
	v := declaredView{features: binary.LittleEndian.Uint64(h)}
	count, length := binary.LittleEndian.Uint32(h[8:]), binary.LittleEndian.Uint32(h[12:])
	if n := len(d.ring.features); n < 64 && v.features>>n != 0 {
		return v, formatErrorf("view features", at, "the set %#x has more than %d features", v.features, n)
	}
	if count > length || count > d.points {
		return v, formatErrorf("trim count", at+8, "%d trims in %d bytes of %d points", count, length, d.points)
	}
	trims, err := r.take(uint64(length))
	if err != nil {
		return v, err
	}
	v.trims = make([]uint32, 0, count)
	next := uint64(0)
	for range count {
		gap, n := binary.Uvarint(trims)
		if n <= 0 || n > 1 && trims[n-1] == 0 || gap >= uint64(d.points)-next {
			return v, formatErrorf("trims", at+head, "trim %d is no position, or not in its shortest form", len(v.trims))
		}
		v.trims = append(v.trims, uint32(next+gap))
		next += gap + 1
		trims = trims[n:]
	}
	if len(trims) > 0 {
		return v, formatErrorf("trims", r.start-len(trims), "%d bytes are left over", len(trims))
	}
	return v, nil
}

// checkTrims checks that a view leaves out points of its members only, nobody's last point, and no more than its budget.
func (d *decoder) checkTrims(at int) error {
	r := d.ring
	out := make([]uint32, r.Len()) // how many points of each backend are left out
	members := newBitmap(r.Len())
	for _, declared := range r.views {
		copy(members, r.placed)
		for f := range r.features {
			if declared.features>>f&1 != 0 {
				members.and(r.features[f].members)
			}
		}
		for _, pos := range declared.trims {
			owner := r.packed.owner(pos)
			if out[owner]++; !members.has(owner) || uint64(out[owner]) >= r.algorithm.quota(r.Weight(owner)) {
				return formatErrorf("trims", at, "point %d of backend %q is not of the view, or its last", pos, r.ID(owner))
			}
		}
		if budget := d.pointsOf(members) / trimBudget; uint64(len(declared.trims)) > budget {
			return formatErrorf("trims", at, "view %#x leaves out %d points, its budget is %d", declared.features, len(declared.trims), budget)
		}
		for _, pos := range declared.trims {
			out[r.packed.owner(pos)] = 0
		}
	}
	if len(r.views[0].trims) > 0 {
		all, err := r.View()
		r.all = all
		return err
	}
	return nil
}

// pointsOf returns how many points these backends have.
func (d *decoder) pointsOf(members bitmap) uint64 {
	points := uint64(0)
	for i := range d.ring.Len() {
		if members.has(i) {
			points += d.ring.algorithm.quota(d.ring.Weight(i))
		}
	}
	return points
}
