// SPDX-License-Identifier: Apache-2.0

//! A reader of Ringwright's consistent-hash rings that needs nothing but Rust.
//!
//! It reads what `docs/snapshot-format.md` of Ringwright describes, and refuses what is not so. A [`Snapshot`] is one ring;
//! a [`Directory`] reads the files of a ring as a pod mounts them, and gives the [`State`] that answers:
//!
//! ```no_run
//! # fn main() -> Result<(), ringwright::Error> {
//! let directory = ringwright::Directory::new("/etc/ring").datacenter("lab01");
//! let mut state = directory.load(None)?;
//! for decision in state.decide(b"user:1234", &["ssd"], 2)? {
//!     println!("{} {}", decision.backend.identity, decision.address);
//! }
//! // From time to time. On an error the old state stays good.
//! match directory.load(Some(&state)) {
//!     Ok(next) => state = next,
//!     Err(error) => eprintln!("ring not loaded: {error}"),
//! }
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bytes;
mod crc;
mod directory;
mod error;
mod identity;
mod json;
mod layout;
mod moment;
mod packed;
mod points;
mod ring;
mod routing;
mod sha256;
mod snapshot;
mod split;
mod state;
mod tables;
mod views;

/// What to give where a backend needs no features.
pub const NO_FEATURES: &[&str] = &[];

pub use directory::{Directory, MAX_SNAPSHOT_BYTES};
pub use error::Error;
pub use identity::Identity;
pub use layout::Version;
pub use ring::{Ring, Successors};
pub use routing::{Reference, Routing, Slot, Split};
pub use snapshot::{digest, position, Backend, Snapshot, MAX_RECIPE_POINTS};
pub use split::{bucket, BUCKETS};
pub use state::{Decision, LoadedRing, Role, State};
