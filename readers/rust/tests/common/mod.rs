// SPDX-License-Identifier: Apache-2.0

//! What the tests share: summaries of snapshots, and the mutations that `readers/testdata/README.md` lists.

#![allow(dead_code)] // Each test uses a part.

use std::fs;
use std::path::{Path, PathBuf};

use ringwright::{position, Error, Snapshot};

const MAX_RECIPE_POINTS: u32 = 1 << 16;
const SET_VALUES: [u32; 10] = [0, 1, 2, 255, 256, 65_535, 65_537, (1 << 31) - 1, 1 << 31, u32::MAX];

/// Returns a path below the folder of all readers.
pub fn readers(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Reads a file that has to be there.
pub fn read(path: impl AsRef<Path>) -> Vec<u8> {
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

/// Reads a text file that has to be there.
pub fn read_text(path: impl AsRef<Path>) -> String {
    String::from_utf8(read(path)).expect("text is UTF-8")
}

/// Returns the files of a folder whose names end so, sorted.
pub fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(end));
    paths.sort();
    paths
}

/// Returns the checksum of what a snapshot says, `None` where it is refused.
pub fn summary(data: &[u8]) -> Option<u32> {
    let snapshot = match Snapshot::open_with(data, MAX_RECIPE_POINTS) {
        Ok(snapshot) => snapshot,
        Err(Error::Format { .. } | Error::TooManyPoints { .. }) => return None,
        Err(error) => panic!("opening a snapshot must not fail with {error:?}"),
    };
    let mut out = Vec::new();
    for backend in snapshot.backends() {
        out.extend_from_slice(backend.identity.as_bytes());
        out.push(0);
        out.extend_from_slice(&backend.weight.to_le_bytes());
        out.extend_from_slice(backend.zone.as_bytes());
        out.push(0);
    }
    let names: Vec<&str> = snapshot.features().collect();
    let mut sets = vec![vec![]];
    sets.extend(names.iter().map(|&name| vec![name]));
    sets.push(names);
    for features in sets {
        out.extend_from_slice(features.concat().as_bytes());
        out.push(0);
        let ring = snapshot.ring(&features).expect("features of the ring");
        for j in 0..64u32 {
            for owner in ring.successors(j.wrapping_mul(0x9e37_79b1)).take(3) {
                out.extend_from_slice(&(owner as u32).to_le_bytes());
            }
            out.push(0xff);
        }
    }
    Some(position(&out)) // The CRC-32.
}

/// CRC-32C a bit at a time, apart from that of the reader.
pub fn crc32c(data: &[u8]) -> u32 {
    !data.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ if crc & 1 != 0 { 0x82f6_3b78 } else { 0 })
    })
}

fn reseal(mut data: Vec<u8>) -> Vec<u8> {
    if let Some(end) = data.len().checked_sub(4) {
        let sum = crc32c(&data[..end]);
        data[end..].copy_from_slice(&sum.to_le_bytes());
    }
    data
}

fn flip(good: &[u8], i: usize) -> Vec<u8> {
    let mut data = good.to_vec();
    data[i / 8] ^= 1 << (i % 8);
    data
}

fn truncate_resealed(good: &[u8], length: usize) -> Vec<u8> {
    let mut data = good[..length].to_vec();
    if length >= 72 {
        data[40..48].copy_from_slice(&(length as u64).to_le_bytes());
    }
    reseal(data)
}

fn set_resealed(good: &[u8], i: usize) -> Vec<u8> {
    let kinds = SET_VALUES.len() + 2;
    let word = i / kinds * 4..i / kinds * 4 + 4;
    let mut data = good.to_vec();
    let value = u32::from_le_bytes(data[word.clone()].try_into().expect("four bytes"));
    let other = [value.wrapping_add(1), value.wrapping_sub(1)];
    let value = SET_VALUES.iter().chain(&other).nth(i % kinds).expect("a kind");
    data[word].copy_from_slice(&value.to_le_bytes());
    reseal(data)
}

/// Calls `each` with all bad snapshots that a mutation makes of a good one.
pub fn mutate(name: &str, good: &[u8], each: impl FnMut(Vec<u8>)) {
    let length = good.len();
    match name {
        "truncate" => (0..length).map(|i| good[..i].to_vec()).for_each(each),
        "truncate-resealed" => (0..length).map(|i| truncate_resealed(good, i)).for_each(each),
        "flip" => (0..8 * length).map(|i| flip(good, i)).for_each(each),
        "flip-resealed" => (0..8 * length).map(|i| reseal(flip(good, i))).for_each(each),
        "set-resealed" => (0..(SET_VALUES.len() + 2) * (length / 4 - 1)).map(|i| set_resealed(good, i)).for_each(each),
        _ => panic!("unknown mutation {name}"),
    }
}

/// Says how many there are, which are accepted as ranges of numbers, and the CRC-32 of the summaries of those.
pub fn verdicts(sums: &[Option<u32>]) -> String {
    let (mut ranges, mut first) = (Vec::new(), None);
    for (i, sum) in sums.iter().copied().chain([None]).enumerate() {
        match (sum, first) {
            (Some(_), None) => first = Some(i),
            (None, Some(start)) => {
                ranges.push(format!("{start}-{}", i - 1));
                first = None;
            }
            _ => {}
        }
    }
    let accepted: Vec<u8> = sums.iter().flatten().flat_map(|sum| sum.to_le_bytes()).collect();
    let ranges = if ranges.is_empty() { "-".to_owned() } else { ranges.join(",") };
    format!("{} {ranges} {:08x}", sums.len(), position(&accepted))
}

/// Returns the bytes of hex digits; `-` is none.
pub fn unhex(text: &str) -> Vec<u8> {
    let digits = text.trim_matches('-');
    (0..digits.len() / 2).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).expect("hex digits")).collect()
}

/// Returns the words between commas; `-` is none.
pub fn words(text: &str) -> Vec<&str> {
    text.split(',').filter(|word| *word != "-").collect()
}
