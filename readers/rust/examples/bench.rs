// SPDX-License-Identifier: Apache-2.0

//! Measures how long a look-up takes in a snapshot, searched as it is, beside a binary search in a sorted list of
//! (hash, owner): `cargo run --release --example bench -- SNAPSHOT`. The ring is one of IPv4 addresses of one weight.

use std::time::Instant;

use ringwright::{position, Snapshot};

const LOOKUPS: u32 = 4_000_000;
const ROUNDS: usize = 7;

fn main() {
    let path = std::env::args().nth(1).expect("usage: bench SNAPSHOT");
    let data = std::fs::read(&path).expect("a readable file");
    let snapshot = Snapshot::open(data).expect("a snapshot");
    let none: [&str; 0] = [];
    let ring = snapshot.ring(&none).expect("no features");
    let list = sorted(&snapshot);
    assert_eq!(list.len(), snapshot.points() as usize);

    let in_snapshot = |position| ring.owner(position).map_or(0, |owner| owner as u32);
    let in_list = |position| {
        let i = list.partition_point(|&(hash, _)| hash < position);
        list[if i == list.len() { 0 } else { i }].1
    };
    for position in positions().take(100_000) {
        assert_eq!(in_snapshot(position), in_list(position), "position {position}");
    }

    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let (packed, sum) = nanoseconds(in_snapshot);
        let (plain, same) = nanoseconds(in_list);
        assert_eq!(sum, same, "the sums of all owners");
        times.push((packed, plain));
    }
    let median = |mut column: Vec<f64>| {
        column.sort_by(f64::total_cmp);
        column[ROUNDS / 2]
    };
    let packed = median(times.iter().map(|row| row.0).collect());
    let plain = median(times.iter().map(|row| row.1).collect());
    println!("{} backends, {} points, {} bytes", snapshot.len(), snapshot.points(), snapshot.bytes().len());
    println!("snapshot     {packed:6.1} ns an owner");
    println!("sorted list  {plain:6.1} ns an owner, {} bytes", list.len() * std::mem::size_of::<(u32, u32)>());
    println!("ratio        {:6.2} (below 1: the snapshot is faster)", packed / plain);
}

/// Positions that follow no order.
fn positions() -> impl Iterator<Item = u32> {
    (0..LOOKUPS).map(|i| i.wrapping_mul(0x9e37_79b1).rotate_left(15).wrapping_mul(0x85eb_ca6b))
}

/// Returns the time for an owner, and the sum of all owners, which keeps the compiler from leaving the work out.
fn nanoseconds(find: impl Fn(u32) -> u32) -> (f64, u32) {
    let started = Instant::now();
    let sum = positions().fold(0u32, |sum, position| sum.wrapping_add(find(position)));
    (started.elapsed().as_nanos() as f64 / f64::from(LOOKUPS), sum)
}

/// Places the points of a ring of IPv4 addresses, all of one weight.
fn sorted(snapshot: &Snapshot) -> Vec<(u32, u32)> {
    let mut list = Vec::new();
    for (number, backend) in snapshot.backends().enumerate() {
        let input = backend.identity.replace(':', "\0").into_bytes();
        let mut hash = 0u32;
        for _ in 0..snapshot.points() as usize / snapshot.len() {
            hash = position(&[&input[..], &hash.to_le_bytes()].concat());
            list.push((hash, number as u32));
        }
    }
    list.sort_unstable();
    list
}
