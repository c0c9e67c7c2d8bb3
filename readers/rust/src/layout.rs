// SPDX-License-Identifier: Apache-2.0

//! Header, section table and trailer: where everything stands, and that nothing else does.

use std::ops::Range;

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::crc::crc32c;
use crate::error::Error;
use crate::identity::Identity;

pub(crate) const MAX_FEATURES: u32 = 64;
pub(crate) const MAX_WEIGHT: u32 = 1_000_000;

const MAGIC: &[u8] = b"\x89RWRING\n";
const FORMAT_VERSION: u16 = 1;
const MAX_BACKENDS: u32 = 65_536;
const MAX_POINTS: u32 = (1 << 31) - 1;
const MAX_SECTIONS: u32 = 64;
const MILLION: u32 = 1_000_000;

const HEADER: usize = 64;
const ROW: usize = 24;
const TRAILER: usize = 8;
const OPTIONAL: u32 = 1;

/// How the points of a ring were chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// The placement of NGINX and of pingora-ketama v1
    V1 = 1,
    /// The placement of pingora-ketama v2
    V2 = 2,
    /// Points by a weight unit, and trimmed
    V3 = 3,
}

/// The fields of the header that describe the ring.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) version: Version,
    pub(crate) identity: Identity,
    pub(crate) points_per_weight: u32,
    pub(crate) weight_unit: u32,
    pub(crate) backends: usize,
    pub(crate) points: u32,
    sections: u32,
}

impl Header {
    /// The points of a backend by its weight, but for those whose chain stays where it starts.
    pub(crate) fn quota(&self, weight: u32) -> u64 {
        let points = u64::from(weight) * u64::from(self.points_per_weight);
        if self.version < Version::V3 || points == 0 {
            return points;
        }
        let unit = u64::from(self.weight_unit);
        ((points + unit / 2) / unit).max(4)
    }
}

/// Where the sections stand in the file.
#[derive(Default)]
pub(crate) struct Sections {
    pub(crate) backends: Range<usize>,
    pub(crate) features: Option<Range<usize>>,
    pub(crate) views: Option<Range<usize>>,
    pub(crate) points: Option<Range<usize>>,
    pub(crate) fingerprint: Option<Range<usize>>,
}

/// Checks the file as a whole.
pub(crate) fn read(data: &[u8]) -> Result<(Header, Sections), Error> {
    check_frame(data)?;
    let header = read_header(data)?;
    let sections = read_sections(data, &header)?;
    Ok((header, sections))
}

fn check_frame(data: &[u8]) -> Result<(), Error> {
    if data.len() < HEADER + TRAILER || !data.starts_with(MAGIC) {
        return Err(Error::format("magic", 0, "not a snapshot"));
    }
    let version = u16_at(data, 8);
    if version != FORMAT_VERSION {
        return Err(Error::format("format version", 8, format!("{version} is not known, only {FORMAT_VERSION}")));
    }
    let length = u64_at(data, 40);
    if length != data.len() as u64 || length % 8 != 0 {
        return Err(Error::format("length", 40, format!("{length}, the file has {} bytes", data.len())));
    }
    let end = data.len() - 4;
    if crc32c(&data[..end]) != u32_at(data, end) {
        return Err(Error::format("checksum", end, "is not that of the content"));
    }
    check(u32_at(data, end - 4) == 0, "trailer", end - 4, "is not 0")
}

fn check(good: bool, field: &'static str, offset: usize, reason: impl ToString) -> Result<(), Error> {
    if good {
        return Ok(());
    }
    Err(Error::format(field, offset, reason.to_string()))
}

fn read_header(data: &[u8]) -> Result<Header, Error> {
    let number = |field, offset, range: Range<u32>| {
        let value = u32_at(data, offset);
        let reason = || format!("{value} is not within {} to {}", range.start, range.end - 1);
        check(range.contains(&value), field, offset, reason())?;
        Ok(value)
    };
    check(u16_at(data, 10) == 0, "flags", 10, "unknown to this reader")?;
    let version = match data[12] {
        1 => Version::V1,
        2 => Version::V2,
        3 => Version::V3,
        other => return Err(Error::format("algorithm", 12, format!("{other} is not 1, 2 or 3"))),
    };
    let identity = match data[13] {
        1 => Identity::Address,
        2 => Identity::Nginx,
        3 => Identity::Name,
        other => return Err(Error::format("identity", 13, format!("{other} is not 1, 2 or 3"))),
    };
    let per_weight = if version == Version::V1 { 160..161 } else { 1..100_001 };
    let only_v3 = if version == Version::V3 { 1..MILLION + 1 } else { 0..1 };
    check(u16_at(data, 14) == 0, "reserved bytes", 14, "are not 0")?;
    check(data[48..HEADER].iter().all(|&byte| byte == 0), "reserved bytes", 48, "are not 0")?;
    number("largest imbalance", 24, only_v3.clone())?;
    let backends = number("number of backends", 28, 0..MAX_BACKENDS + 1)?;
    Ok(Header {
        version,
        identity,
        points_per_weight: number("points per weight", 16, per_weight)?,
        weight_unit: number("weight unit", 20, only_v3)?,
        backends: backends as usize,
        points: number("number of points", 32, 0..if backends > 0 { MAX_POINTS + 1 } else { 1 })?,
        sections: number("number of sections", 36, 1..MAX_SECTIONS + 1)?,
    })
}

fn read_sections(data: &[u8], header: &Header) -> Result<Sections, Error> {
    let trailer = data.len() - TRAILER;
    let mut end = HEADER + header.sections as usize * ROW;
    check(end <= trailer, "section table", HEADER, "does not fit into the file")?;
    let mut sections = Sections::default();
    let mut last = 0;
    for at in (HEADER..end).step_by(ROW) {
        let (kind, flags, offset) = (u32_at(data, at), u32_at(data, at + 4), u64_at(data, at + 8));
        let length = u64_at(data, at + 16);
        check(kind > last, "section kind", at, "does not ascend")?;
        check(flags == if kind <= 5 { 0 } else { OPTIONAL }, "section flags", at + 4, format!("{flags:#x} with kind {kind}"))?;
        let start = padded(data, end)?;
        check(offset == start as u64, "section offset", at + 8, format!("{offset}, not {start}"))?;
        check(length <= (trailer - start) as u64, "section length", at + 16, "more than the file has left")?;
        end = start + length as usize;
        match kind {
            1 => sections.backends = start..end,
            2 => sections.features = Some(start..end),
            3 => sections.views = Some(start..end),
            4 => sections.points = Some(start..end),
            5 => sections.fingerprint = Some(start..end),
            _ => {}
        }
        last = kind;
    }
    check(padded(data, end)? == trailer, "section table", HEADER, "the last section does not end at the trailer")?;
    check(u32_at(data, HEADER) == 1, "section table", HEADER, "there are no backends")?;
    let v3 = header.version == Version::V3;
    check(sections.views.is_some() == v3, "section table", HEADER, "views belong to V3 and to nothing else")?;
    let both_or_none = sections.points.is_some() == sections.fingerprint.is_some();
    check(!both_or_none, "section table", HEADER, "there is one of points and fingerprint")?;
    Ok(sections)
}

/// Returns the next multiple of 8, up to which all bytes are 0.
fn padded(data: &[u8], end: usize) -> Result<usize, Error> {
    let start = (end + 7) / 8 * 8;
    check(data[end..start].iter().all(|&byte| byte == 0), "padding", end, "is not 0")?;
    Ok(start)
}
