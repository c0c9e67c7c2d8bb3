// SPDX-License-Identifier: Apache-2.0

use std::borrow::Cow;

use crate::bytes::{has_bit, set_bit};
use crate::packed::Packed;

/// The ring of those backends of a snapshot that have a set of features.
///
/// A position is that of a key, [`position`](crate::position); a backend is the number that
/// [`Snapshot::backend`](crate::Snapshot::backend) takes.
#[derive(Clone, Debug)]
pub struct Ring<'a> {
    packed: Packed<'a>,
    /// The backends that can own keys.
    members: Cow<'a, [u8]>,
    /// How many there are.
    live: usize,
    /// All backends with points are members, so that nobody needs to look.
    whole: bool,
    /// The points that are left out, a bit for each; empty where none is.
    trims: &'a [u8],
}

impl<'a> Ring<'a> {
    /// Takes the backends that have points, and the members among them where not all of them are.
    pub(crate) fn new(packed: Packed<'a>, placed: &'a [u8], members: Option<Vec<u8>>, trims: &'a [u8]) -> Ring<'a> {
        let whole = members.is_none();
        let members = members.map_or(Cow::Borrowed(placed), Cow::Owned);
        let live = members.iter().map(|byte| byte.count_ones() as usize).sum();
        Ring { packed, members, live, whole, trims }
    }

    /// Returns the number of backends that own keys.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Says that no backend owns any key.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Returns the backend that owns a position, `None` where the ring is empty.
    #[inline]
    pub fn owner(&self, position: u32) -> Option<usize> {
        if self.live == 0 {
            return None;
        }
        let point = self.packed.find(position);
        let owner = self.packed.owner(point);
        if self.whole && self.trims.is_empty() {
            return Some(owner);
        }
        Some(self.owner_from(point))
    }

    /// Returns the owner of the first point from one on that is of this ring. Every member has one.
    fn owner_from(&self, mut point: u32) -> usize {
        loop {
            let owner = self.packed.owner(point);
            if self.holds(point, owner) {
                return owner;
            }
            point = self.packed.next(point);
        }
    }

    fn holds(&self, point: u32, owner: usize) -> bool {
        has_bit(&self.members, owner) && (self.trims.is_empty() || !has_bit(self.trims, point as usize))
    }

    /// Returns all backends that own keys: the owner of a position, and then as they follow, each once.
    pub fn successors(&self, position: u32) -> Successors<'_> {
        let point = if self.live == 0 { 0 } else { self.packed.find(position) };
        Successors { ring: self, point, left: self.live, seen: Vec::new() }
    }

    /// Returns up to `n` distinct backends for a position, the owner first, without those for which `skip` is true.
    pub fn owners(&self, position: u32, n: usize, mut skip: impl FnMut(usize) -> bool) -> Vec<usize> {
        self.successors(position).filter(|&backend| !skip(backend)).take(n).collect()
    }
}

/// The backends of a ring in the order in which they follow a position. It looks at each point once at most.
#[derive(Clone, Debug)]
pub struct Successors<'a> {
    ring: &'a Ring<'a>,
    /// The next point to look at.
    point: u32,
    /// How many backends have not been seen.
    left: usize,
    /// A bit for each backend that was seen; empty at the start, so that the first one costs nothing.
    seen: Vec<u8>,
}

impl Iterator for Successors<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        loop {
            let (ring, point) = (self.ring, self.point);
            let owner = ring.packed.owner(point);
            self.point = ring.packed.next(point);
            if !ring.holds(point, owner) || !self.seen.is_empty() && has_bit(&self.seen, owner) {
                continue;
            }
            self.seen.resize(ring.members.len(), 0);
            set_bit(&mut self.seen, owner);
            self.left -= 1;
            return Some(owner);
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Successors<'_> {}

impl std::iter::FusedIterator for Successors<'_> {}
