// SPDX-License-Identifier: Apache-2.0

//! Sections 1 and 2: backends and features.

use std::ops::Range;

use crate::bytes::{set_bit, Column, Parts};
use crate::crc::crc32;
use crate::error::Error;
use crate::identity::{is_name, Parsed};
use crate::layout::{Header, Version, MAX_FEATURES, MAX_WEIGHT};

/// The checksum from which a chain repeats its first point for ever.
pub(crate) const FIXED_POINT: u32 = 0x6dd9_0a9d;

/// Where the columns of section 1 stand.
#[derive(Clone, Debug)]
pub(crate) struct Backends {
    weights: Column,
    identities: Texts,
    zone_numbers: Column,
    zones: Texts,
}

/// Texts that stand one behind the other, and where each ends.
#[derive(Clone, Debug)]
struct Texts {
    ends: Column,
    text: Range<usize>,
}

impl Texts {
    fn range(&self, data: &[u8], i: usize) -> Range<usize> {
        let start = if i == 0 { 0 } else { self.ends.get(data, i - 1) as usize };
        self.text.start + start..self.text.start + self.ends.get(data, i) as usize
    }

    fn get<'a>(&self, data: &'a [u8], i: usize) -> &'a [u8] {
        &data[self.range(data, i)]
    }

    fn check(&self, data: &[u8], field: &'static str) -> Result<(), Error> {
        let mut last = 0;
        for i in 0..self.ends.count {
            let end = self.ends.get(data, i) as usize;
            if end <= last {
                return Err(Error::format(field, self.text.start, format!("the end of number {i} does not ascend")));
            }
            last = end;
        }
        if last != self.text.len() {
            return Err(Error::format(field, self.text.start, "the last one ends elsewhere"));
        }
        Ok(())
    }
}

impl Backends {
    pub(crate) fn weight(&self, data: &[u8], i: usize) -> u32 {
        self.weights.get(data, i)
    }

    pub(crate) fn identity<'a>(&self, data: &'a [u8], i: usize) -> &'a [u8] {
        self.identities.get(data, i)
    }

    /// Returns the zone of a backend, empty where it has none.
    pub(crate) fn zone<'a>(&self, data: &'a [u8], i: usize) -> &'a [u8] {
        match self.zone_numbers.get(data, i) as usize {
            0 => b"",
            number => self.zones.get(data, number - 1),
        }
    }

    pub(crate) fn read(data: &[u8], section: &Range<usize>, header: &Header) -> Result<Backends, Error> {
        let mut parts = Parts::new(data, section, "backends");
        let (ids, zones, zone_bytes) = (parts.u32()?, parts.u32()?, parts.u32()?);
        let widths_at = parts.take(4)?.start;
        let widths = &data[widths_at..widths_at + 4];
        if zones as usize > header.backends {
            return Err(Error::format("number of zones", section.start + 4, "more than there are backends"));
        }
        let mut want = [widths[0], smallest_width(ids), smallest_width(zones), smallest_width(zone_bytes)];
        if zones == 0 {
            want[2..].fill(0);
        }
        if widths != want || ![1, 2, 4].contains(&widths[0]) {
            return Err(Error::format("widths of columns", widths_at, format!("{widths:?}, not {want:?}")));
        }
        let weights = parts.column(widths[0], header.backends)?;
        let ends = parts.column(widths[1], header.backends)?;
        let identities = Texts { ends, text: parts.take(ids as usize)? };
        let zone_numbers = parts.column(widths[2], header.backends)?;
        let ends = parts.column(widths[3], zones as usize)?;
        let zones = Texts { ends, text: parts.take(zone_bytes as usize)? };
        parts.finish()?;
        identities.check(data, "identities")?;
        zones.check(data, "zones")?;

        let backends = Backends { weights, identities, zone_numbers, zones };
        let heaviest = (0..header.backends).map(|i| weights.get(data, i)).max().unwrap_or(0);
        if heaviest > MAX_WEIGHT || smallest_width(heaviest) != widths[0] {
            return Err(Error::format("weights", widths_at, format!("{heaviest} in {} bytes", widths[0])));
        }
        backends.check_zones(data)?;
        Ok(backends)
    }

    fn check_zones(&self, data: &[u8]) -> Result<(), Error> {
        let wrong = |reason: String| Err(Error::format("zones", self.zones.text.start, reason));
        let count = self.zones.ends.count;
        let mut used = vec![false; count + 1];
        for i in 0..self.zone_numbers.count {
            match used.get_mut(self.zone_numbers.get(data, i) as usize) {
                Some(used) => *used = true,
                None => return wrong(format!("that of backend {i} is not one of {count}")),
            }
        }
        for k in 0..count {
            let zone = self.zones.get(data, k);
            if !is_name(zone) || k > 0 && zone <= self.zones.get(data, k - 1) {
                return wrong(format!("number {} is not a name, or does not ascend", k + 1));
            }
            if !used[k + 1] {
                return wrong(format!("number {} is that of no backend", k + 1));
            }
        }
        Ok(())
    }

    /// Checks the identities, and returns the checksum that starts the chain of each backend.
    pub(crate) fn chain_starts(&self, data: &[u8], header: &Header) -> Result<Vec<u32>, Error> {
        let mut starts = Vec::with_capacity(header.backends);
        let mut last: Option<Parsed<'_>> = None;
        for i in 0..header.backends {
            let range = self.identities.range(data, i);
            let wrong = |reason| Error::format("identity", range.start, format!("backend {i}: {reason}"));
            let parsed = header.identity.parse(&data[range.clone()]).map_err(wrong)?;
            if last.map_or(false, |last| !last.precedes(&parsed)) {
                return Err(wrong("is not in ring order"));
            }
            starts.push(parsed.checksum());
            last = Some(parsed);
        }
        if header.version == Version::V3 {
            salt(&mut starts);
        }
        Ok(starts)
    }
}

/// Gives each backend a chain of its own.
fn salt(starts: &mut [u32]) {
    let mut taken = std::collections::HashSet::with_capacity(starts.len() + 1);
    taken.insert(FIXED_POINT);
    for start in starts {
        let plain = *start;
        let mut salt = 0u32;
        while !taken.insert(*start) {
            salt += 1;
            *start = crc32(crc32(plain, &[0, 0]), &salt.to_le_bytes());
        }
    }
}

fn smallest_width(largest: u32) -> u8 {
    match largest {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

/// A feature: where its name and its members stand.
#[derive(Clone, Debug)]
pub(crate) struct Feature {
    pub(crate) name: Range<usize>,
    pub(crate) members: Range<usize>,
}

/// Reads section 2.
pub(crate) fn read_features(data: &[u8], section: &Range<usize>, header: &Header) -> Result<Vec<Feature>, Error> {
    let mut parts = Parts::new(data, section, "features");
    let count = parts.u32()?;
    if !(1..=MAX_FEATURES).contains(&count) {
        return Err(Error::format("number of features", section.start, format!("{count} is not within 1 to {MAX_FEATURES}")));
    }
    let mut features: Vec<Feature> = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let at = parts.take(1)?.start;
        let name = parts.take(usize::from(data[at]))?;
        let members = parts.take((header.backends + 7) / 8)?;
        let last = features.last().map_or(&b""[..], |feature| &data[feature.name.clone()]);
        if !is_name(&data[name.clone()]) || &data[name.clone()] <= last {
            return Err(Error::format("feature", at, "not a name, or does not ascend"));
        }
        if header.backends % 8 != 0 && data[members.end - 1] >> (header.backends % 8) != 0 {
            return Err(Error::format("feature", members.end - 1, "a bit behind the last backend is not 0"));
        }
        features.push(Feature { name, members });
    }
    parts.finish()?;
    Ok(features)
}

/// Returns the set of the backends that have a weight.
pub(crate) fn placed(data: &[u8], backends: &Backends, header: &Header) -> Vec<u8> {
    let mut placed = vec![0; (header.backends + 7) / 8];
    for i in (0..header.backends).filter(|&i| backends.weight(data, i) > 0) {
        set_bit(&mut placed, i);
    }
    placed
}
