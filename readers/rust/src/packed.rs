// SPDX-License-Identifier: Apache-2.0

//! Points as section 4 packs them, searched in place.

use crate::bytes::{u32_at, u64_at};

pub(crate) const OVERFLOW: u32 = 1 << 31;
pub(crate) const HEAD: usize = 16;
pub(crate) const GROUP: usize = 12;
pub(crate) const OVERFLOW_ROW: usize = 64;
pub(crate) const SLACK: usize = 32;

/// Up to how many entries of a bucket are counted, rather than searched by halving. The slack behind the entries is enough
/// to load as many from any one on.
const COUNTED: u32 = 5;

/// The sizes of section 4, which follow from the numbers of points and backends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub(crate) points: u32,
    pub(crate) bucket_bits: u32,
    pub(crate) owner_bits: u32,
}

impl Geometry {
    pub(crate) fn new(points: u32, backends: usize) -> Geometry {
        let bits_of = |last: u32| 32 - last.leading_zeros();
        let quarter = points / 4 + u32::from(points % 4 != 0);
        Geometry {
            points,
            bucket_bits: bits_of(quarter.saturating_sub(1)).max(4),
            owner_bits: bits_of(backends.saturating_sub(1) as u32),
        }
    }

    pub(crate) fn hash_bits(self) -> u32 {
        32 - self.bucket_bits
    }

    pub(crate) fn width(self) -> u32 {
        self.hash_bits() + self.owner_bits
    }

    pub(crate) fn groups(self) -> usize {
        1 << (self.bucket_bits - 4)
    }

    pub(crate) fn entry_bytes(self) -> u64 {
        let entries = if self.points == 0 { 0 } else { u64::from(self.points) + 1 };
        (entries * u64::from(self.width()) + 7) / 8 + SLACK as u64
    }

    pub(crate) fn owner_mask(self) -> u64 {
        (1 << self.owner_bits) - 1
    }
}

/// The parts of section 4.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<'a> {
    pub(crate) geometry: Geometry,
    directory: &'a [u8],
    overflow: &'a [u8],
    entries: &'a [u8],
}

impl<'a> Packed<'a> {
    /// Takes the section apart. Its length has been checked.
    pub(crate) fn new(section: &'a [u8], geometry: Geometry) -> Packed<'a> {
        let (directory, rest) = section[HEAD..].split_at(geometry.groups() * GROUP);
        let (overflow, entries) = rest.split_at(rest.len() - geometry.entry_bytes() as usize);
        Packed { geometry, directory, overflow, entries }
    }

    /// Returns entry `i`, up to the one behind the last point and five more.
    #[inline]
    pub(crate) fn entry(&self, i: u32) -> u64 {
        let width = self.geometry.width();
        let bit = u64::from(i) * u64::from(width);
        u64_at(self.entries, (bit / 8) as usize) >> (bit % 8) & ((1 << width) - 1)
    }

    /// Returns the number of the backend that has point `i`.
    #[inline]
    pub(crate) fn owner(&self, i: u32) -> usize {
        (self.entry(i) & self.geometry.owner_mask()) as usize
    }

    /// Returns the first word and the counts of a group.
    pub(crate) fn group(&self, group: usize) -> (u32, u64) {
        let row = &self.directory[group * GROUP..][..GROUP];
        (u32_at(row, 0), u64_at(row, 4))
    }

    /// Returns the end of the bucket at a place of the group that has an overflow row.
    pub(crate) fn overflow_end(&self, row: u64, place: u32) -> u32 {
        u32_at(self.overflow, row as usize * OVERFLOW_ROW + place as usize * 4)
    }

    pub(crate) fn overflow_rows(&self) -> u64 {
        (self.overflow.len() / OVERFLOW_ROW) as u64
    }

    /// Returns the entries of a bucket: the first, and the one behind the last.
    #[inline]
    pub(crate) fn bucket(&self, bucket: u32) -> (u32, u32) {
        let (start, counts) = self.group((bucket / 16) as usize);
        let place = bucket % 16;
        if start & OVERFLOW != 0 {
            let begin = if place == 0 { start & !OVERFLOW } else { self.overflow_end(counts, place - 1) };
            return (begin, self.overflow_end(counts, place));
        }
        let before = start + sum_nibbles(counts & ((1 << (4 * place)) - 1));
        (before, before + (counts >> (4 * place) & 15) as u32)
    }

    /// Returns the number of the first point at or behind a position. There has to be a point.
    #[inline]
    pub(crate) fn find(&self, position: u32) -> u32 {
        let hash_bits = self.geometry.hash_bits();
        let (start, end) = self.bucket(position >> hash_bits);
        let target = u64::from(position & ((1 << hash_bits) - 1)) << self.geometry.owner_bits;
        let found = if end - start <= COUNTED { self.count(start, end, target) } else { self.halve(start, end, target) };
        if found == self.geometry.points {
            0
        } else {
            found
        }
    }

    /// Counts the entries below the target. It looks at as many whatever the bucket holds: a loop whose end nobody can
    /// predict costs more.
    #[inline]
    fn count(&self, start: u32, end: u32, target: u64) -> u32 {
        let below = |k| u32::from(start + k < end) & u32::from(self.entry(start + k) < target);
        start + (0..COUNTED).map(below).sum::<u32>()
    }

    #[cold]
    fn halve(&self, mut start: u32, mut end: u32, target: u64) -> u32 {
        while start < end {
            let middle = start + (end - start) / 2;
            if self.entry(middle) < target {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        start
    }

    /// Returns the number of the point behind another.
    #[inline]
    pub(crate) fn next(&self, i: u32) -> u32 {
        if i + 1 == self.geometry.points {
            0
        } else {
            i + 1
        }
    }

    /// Returns the bytes of the entries.
    pub(crate) fn entries(&self) -> &'a [u8] {
        self.entries
    }
}

/// Returns the sum of the sixteen numbers of four bits.
#[inline]
pub(crate) fn sum_nibbles(counts: u64) -> u32 {
    const EVEN: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = (counts & EVEN) + (counts >> 4 & EVEN);
    (pairs.wrapping_mul(0x0101_0101_0101_0101) >> 56) as u32
}
