// SPDX-License-Identifier: Apache-2.0

use crate::crc::mix;

/// The number of buckets into which a split cuts the keys.
pub const BUCKETS: u32 = 10_000;

/// Returns the bucket, 0 to 9,999, of the key that has a position on the ring.
pub fn bucket(position: u32, seed: u32) -> u32 {
    mix(position ^ seed) % BUCKETS
}
