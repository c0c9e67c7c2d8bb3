// SPDX-License-Identifier: Apache-2.0

//! The checks of section 4, and the points of a snapshot that has section 5 instead.

use std::ops::Range;

use crate::bytes::{u32_at, u64_at};
use crate::crc::{crc32, mix};
use crate::error::Error;
use crate::layout::{Header, Version};
use crate::packed::{sum_nibbles, Geometry, Packed, GROUP, HEAD, OVERFLOW, OVERFLOW_ROW};
use crate::sha256::sha256;

const PROBES: u32 = 4096;
const PROBE_STEP: u32 = 0x9e37_79b1;

/// Checks section 4 from its sizes to its last bit. `totals` says how many points each backend has by its weight.
pub(crate) fn check(data: &[u8], section: &Range<usize>, header: &Header, starts: &[u32], totals: &[u64]) -> Result<(), Error> {
    let geometry = Geometry::new(header.points, header.backends);
    let wrong = |field, at, reason: String| Err(Error::format(field, section.start + at, reason));
    let content = &data[section.clone()];
    if content.len() < HEAD {
        return wrong("points", 0, "the section is too short".into());
    }
    let want = [geometry.bucket_bits as u8, geometry.owner_bits as u8, 0, 0];
    if content[..4] != want {
        return wrong("bits", 0, format!("{:?}, not {want:?}", &content[..4]));
    }
    if u64_at(content, 8) != geometry.entry_bytes() {
        return wrong("bytes of the entries", 8, format!("{}, not {}", u64_at(content, 8), geometry.entry_bytes()));
    }
    let rows = u64::from(u32_at(content, 4));
    let length = (HEAD + geometry.groups() * GROUP) as u64 + rows * OVERFLOW_ROW as u64 + geometry.entry_bytes();
    if length != content.len() as u64 {
        return wrong("points", 4, format!("{rows} overflow rows make {length} bytes, not {}", content.len()));
    }
    let packed = Packed::new(content, geometry);
    check_directory(&packed, section)?;
    check_end(&packed, section)?;
    check_entries(&packed, section, header, starts, totals)
}

/// Checks that the directory accounts for all entries, and uses overflow rows where it has to.
fn check_directory(packed: &Packed<'_>, section: &Range<usize>) -> Result<(), Error> {
    let points = u64::from(packed.geometry.points);
    let (mut done, mut rows) = (0u64, 0);
    for group in 0..packed.geometry.groups() {
        let at = section.start + HEAD + group * GROUP;
        let (start, counts) = packed.group(group);
        if u64::from(start & !OVERFLOW) != done {
            return Err(Error::format("directory", at, format!("the group starts at {}, not {done}", start & !OVERFLOW)));
        }
        if start & OVERFLOW == 0 {
            done += u64::from(sum_nibbles(counts));
        } else {
            if counts != rows || rows == packed.overflow_rows() {
                return Err(Error::format("directory", at + 4, format!("overflow row {counts}, not {rows}")));
            }
            done = check_overflow(packed, counts, done).map_err(|reason| Error::format("overflow row", at, reason))?;
            rows += 1;
        }
        if done > points {
            return Err(Error::format("directory", at, format!("{done} entries of {points}")));
        }
    }
    if done != points || rows != packed.overflow_rows() {
        return Err(Error::format("directory", section.start, format!("{done} entries of {points}, {rows} rows used")));
    }
    Ok(())
}

/// Returns the end of the last bucket of an overflow row.
fn check_overflow(packed: &Packed<'_>, row: u64, start: u64) -> Result<u64, &'static str> {
    let (mut last, mut fullest) = (start, 0);
    for place in 0..16 {
        let end = u64::from(packed.overflow_end(row, place));
        fullest = fullest.max(end.checked_sub(last).ok_or("an end is before its start")?);
        last = end;
    }
    if fullest > 15 {
        Ok(last)
    } else {
        Err("no bucket needs it")
    }
}

/// Checks that the first entry stands behind the last, and nothing behind that.
fn check_end(packed: &Packed<'_>, section: &Range<usize>) -> Result<(), Error> {
    let (geometry, entries) = (packed.geometry, packed.entries());
    let mut bits = 0;
    if geometry.points > 0 {
        bits = (u64::from(geometry.points) + 1) * u64::from(geometry.width());
        if packed.entry(geometry.points) != packed.entry(0) {
            return Err(Error::format("entries", section.end - entries.len(), "the one behind the last is not the first"));
        }
    }
    let behind = &entries[(bits / 8) as usize..];
    if behind[0] >> (bits % 8) != 0 || behind[1..].iter().any(|&byte| byte != 0) {
        return Err(Error::format("entries", section.end - behind.len(), "a bit behind the last is not 0"));
    }
    Ok(())
}

/// Checks that entries ascend, name backends, and are as many for each as its weight gives it.
fn check_entries(
    packed: &Packed<'_>,
    section: &Range<usize>,
    header: &Header,
    starts: &[u32],
    totals: &[u64],
) -> Result<(), Error> {
    let geometry = packed.geometry;
    let mut found = vec![0u64; header.backends];
    for bucket in 0..1u32 << geometry.bucket_bits {
        let (start, end) = packed.bucket(bucket);
        let mut last: Option<(u64, u64)> = None;
        for i in start..end {
            let at = u64::from(i) * u64::from(geometry.width()) / 8;
            let wrong = |reason: String| Error::format("entries", section.end - packed.entries().len() + at as usize, reason);
            let entry = packed.entry(i);
            let (low, owner) = (entry >> geometry.owner_bits, entry & geometry.owner_mask());
            match found.get_mut(owner as usize) {
                Some(count) => *count += 1,
                None => return Err(wrong(format!("point {i} is that of backend {owner} of {}", header.backends))),
            }
            let mut order = (low, owner);
            if header.version == Version::V3 {
                let hash = bucket << geometry.hash_bits() | low as u32;
                order.1 = u64::from(mix(hash ^ starts[owner as usize]));
            }
            if last >= Some(order) {
                return Err(wrong(format!("point {i} does not ascend")));
            }
            last = Some(order);
        }
    }
    match found.iter().zip(totals).position(|(found, total)| found != total) {
        None => Ok(()),
        Some(i) => Err(Error::format("points", section.start, format!("backend {i} has {}, not {}", found[i], totals[i]))),
    }
}

/// Places the points of a snapshot that has none, checks that they are those of section 5, and returns them as section 4.
pub(crate) fn place(
    data: &[u8],
    section: &Range<usize>,
    header: &Header,
    starts: &[u32],
    totals: &[u64],
) -> Result<Vec<u8>, Error> {
    if section.len() != 32 {
        return Err(Error::format("fingerprint", section.start, format!("{} bytes, not 32", section.len())));
    }
    let mut points: Vec<u64> = Vec::with_capacity(header.points as usize);
    for (number, (&start, &total)) in starts.iter().zip(totals).enumerate() {
        let mut hash = 0u32;
        for _ in 0..total {
            hash = crc32(start, &hash.to_le_bytes());
            points.push(u64::from(hash) << 32 | number as u64);
        }
    }
    if header.version == Version::V3 {
        points.sort_unstable_by_key(|&point| ((point >> 32) as u32, mix((point >> 32) as u32 ^ starts[point as u32 as usize])));
    } else {
        points.sort_unstable();
    }
    let geometry = Geometry::new(header.points, header.backends);
    let built = pack(&points, geometry);
    if fingerprint(&Packed::new(&built, geometry))[..] != data[section.clone()] {
        return Err(Error::format("fingerprint", section.start, "the points that were placed have another one"));
    }
    Ok(built)
}

fn fingerprint(packed: &Packed<'_>) -> [u8; 32] {
    let mut found = Vec::new();
    if packed.geometry.points > 0 {
        for j in 0..PROBES {
            let i = packed.find(j.wrapping_mul(PROBE_STEP));
            found.extend_from_slice(&i.to_le_bytes());
            found.extend_from_slice(&(packed.owner(i) as u32).to_le_bytes());
        }
    }
    sha256(&found)
}

/// Writes points, which are in ring order, as section 4 has them. Only its head, which nobody reads again, stays empty.
fn pack(points: &[u64], geometry: Geometry) -> Vec<u8> {
    let bucket_of = |point: u64| (point >> (64 - geometry.bucket_bits)) as usize;
    let mut out = vec![0; HEAD];
    let mut overflow: Vec<u8> = Vec::new();
    let mut done = 0;
    for group in 0..geometry.groups() {
        let start = done as u32;
        let (mut ends, mut counts) = ([0u32; 16], [0u64; 16]);
        for place in 0..16 {
            let here = points[done..].iter().take_while(|&&point| bucket_of(point) == group * 16 + place).count();
            done += here;
            (ends[place], counts[place]) = (done as u32, here as u64);
        }
        if counts.iter().all(|&count| count <= 15) {
            let nibbles = counts.iter().rev().fold(0, |word, count| word << 4 | count);
            out.extend_from_slice(&start.to_le_bytes());
            out.extend_from_slice(&nibbles.to_le_bytes());
        } else {
            out.extend_from_slice(&(start | OVERFLOW).to_le_bytes());
            out.extend_from_slice(&((overflow.len() / OVERFLOW_ROW) as u64).to_le_bytes());
            overflow.extend(ends.iter().flat_map(|end| end.to_le_bytes()));
        }
    }
    out.append(&mut overflow);
    let entries_at = out.len();
    out.resize(entries_at + geometry.entry_bytes() as usize, 0);
    let low_mask = (1u64 << geometry.hash_bits()) - 1;
    for (i, &point) in points.iter().chain(points.first()).enumerate() {
        let entry = (point >> 32 & low_mask) << geometry.owner_bits | (point & geometry.owner_mask());
        let bit = i as u64 * u64::from(geometry.width());
        let at = entries_at + (bit / 8) as usize;
        let word = u64_at(&out, at) | entry << (bit % 8);
        out[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    out
}
