// SPDX-License-Identifier: Apache-2.0

//! Section 3: the declared views of a V3 ring, and the points that each leaves out.

use std::ops::Range;

use crate::bytes::{has_bit, set_bit, u64_at, Parts};
use crate::error::Error;
use crate::layout::{Header, MAX_FEATURES};
use crate::packed::Packed;

/// A declared view.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The set of its features, a bit for each.
    pub(crate) features: u64,
    /// A bit for each point that is left out; empty where none is.
    pub(crate) trims: Vec<u8>,
}

/// Reads section 3. `members` gives the backends that can own keys in the view of a set of features.
pub(crate) fn read(
    data: &[u8],
    section: &Range<usize>,
    header: &Header,
    features: usize,
    packed: &Packed<'_>,
    totals: &[u64],
    members: impl Fn(u64) -> Vec<u8>,
) -> Result<Vec<View>, Error> {
    let mut parts = Parts::new(data, section, "views");
    let count = parts.u32()?;
    if !(1..=MAX_FEATURES + 1).contains(&count) {
        return Err(Error::format("number of views", section.start, format!("{count} is not within 1 to {}", MAX_FEATURES + 1)));
    }
    let mut views: Vec<View> = Vec::new();
    for _ in 0..count {
        let at = parts.take(8)?.start;
        let set = u64_at(data, at);
        let in_order = views.last().map_or(set == 0, |last| set > last.features);
        if !in_order || features < 64 && set >> features != 0 {
            return Err(Error::format("set of a view", at, format!("{set:#x} is not allowed here")));
        }
        let trims = parts.u32()?;
        let bytes = parts.u32()? as usize;
        let range = parts.take(bytes)?;
        let wrong = |reason: String| Error::format("trims", range.start, reason);
        let numbers = read_trims(&data[range.clone()], trims, header.points).map_err(|reason| wrong(reason.into()))?;
        check_trims(&numbers, packed, totals, &members(set)).map_err(wrong)?;
        views.push(View { features: set, trims: bits(&numbers, header.points) });
    }
    parts.finish()?;
    Ok(views)
}

/// Returns the numbers of the points, which ascend.
fn read_trims(data: &[u8], count: u32, points: u32) -> Result<Vec<u32>, &'static str> {
    let mut numbers = Vec::new();
    let (mut rest, mut next) = (data, 0u64);
    for _ in 0..count {
        let length = rest.iter().take(5).position(|&byte| byte < 0x80).ok_or("a number is cut off or too large")? + 1;
        let (number, behind) = rest.split_at(length);
        if length > 1 && number[length - 1] == 0 {
            return Err("a number has more bytes than it takes");
        }
        let distance = number.iter().rev().fold(0, |sum, &byte| sum << 7 | u64::from(byte & 0x7f));
        if next + distance >= u64::from(points) {
            return Err("a number is not that of a point");
        }
        numbers.push((next + distance) as u32);
        next += distance + 1;
        rest = behind;
    }
    if rest.is_empty() {
        Ok(numbers)
    } else {
        Err("there are more bytes than numbers")
    }
}

/// Checks that points of members only are left out, at most a quarter of them, and never the last one of a backend.
fn check_trims(numbers: &[u32], packed: &Packed<'_>, totals: &[u64], members: &[u8]) -> Result<(), String> {
    if numbers.is_empty() {
        return Ok(());
    }
    let mut left = totals.to_vec();
    for &i in numbers {
        let owner = packed.owner(i);
        left[owner] -= 1;
        if !has_bit(members, owner) || left[owner] == 0 {
            return Err(format!("point {i} of backend {owner} is not of the view, or its last"));
        }
    }
    let of_members: u64 = (0..totals.len()).filter(|&i| has_bit(members, i)).map(|i| totals[i]).sum();
    if numbers.len() as u64 > of_members / 4 {
        return Err(format!("{} of {of_members} points are more than a quarter", numbers.len()));
    }
    Ok(())
}

fn bits(numbers: &[u32], points: u32) -> Vec<u8> {
    if numbers.is_empty() {
        return Vec::new();
    }
    let mut bits = vec![0; (points as usize + 7) / 8];
    for &number in numbers {
        set_bit(&mut bits, number as usize);
    }
    bits
}
