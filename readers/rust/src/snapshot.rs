// SPDX-License-Identifier: Apache-2.0

use std::ops::Range;

use crate::crc::crc32;
use crate::error::Error;
use crate::identity::Identity;
use crate::layout::{self, Header, Version};
use crate::packed::{Geometry, Packed};
use crate::points;
use crate::ring::Ring;
use crate::sha256::sha256;
use crate::tables::{self, Backends, Feature, FIXED_POINT};
use crate::views::{self, View};

/// Up to how many points [`Snapshot::open`] builds for a snapshot that has none.
pub const MAX_RECIPE_POINTS: u32 = 64 << 20;

/// Returns the position of a key on every ring.
#[inline]
pub fn position(key: &[u8]) -> u32 {
    crc32(0, key)
}

/// Returns the digest that names a snapshot: `sha256:` and 64 hex digits.
pub fn digest(snapshot: &[u8]) -> String {
    let hex = sha256(snapshot).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("sha256:{hex}")
}

/// One consistent-hash ring: the bytes of a snapshot file, which are searched as they are.
///
/// `B` holds the bytes: a `Vec<u8>`, a borrowed slice, a memory map. Beside them a snapshot keeps a bit for each backend,
/// with V3 a bit for each point and each declared view that leaves points out, and the points themselves where the file is
/// a recipe.
#[derive(Clone, Debug)]
pub struct Snapshot<B = Vec<u8>> {
    bytes: B,
    header: Header,
    backends: Backends,
    features: Vec<Feature>,
    views: Vec<View>,
    placed: Vec<u8>,
    points: Points,
}

/// Where the points are: a range of the file, or built.
#[derive(Clone, Debug)]
enum Points {
    InFile(Range<usize>),
    Built(Vec<u8>),
}

/// One backend of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backend<'a> {
    /// What names it.
    pub identity: &'a str,
    /// Its share of the keys among those of others; 0 where it is drained.
    pub weight: u32,
    /// Where it runs, empty where that is not known.
    pub zone: &'a str,
}

impl<B: AsRef<[u8]>> Snapshot<B> {
    /// Checks a snapshot in full. A recipe is built up to [`MAX_RECIPE_POINTS`].
    ///
    /// # Errors
    ///
    /// [`Error::Format`] where the file breaks a rule of the format, [`Error::TooManyPoints`].
    pub fn open(bytes: B) -> Result<Snapshot<B>, Error> {
        Snapshot::open_with(bytes, MAX_RECIPE_POINTS)
    }

    /// Is [`Snapshot::open`] with another limit to the points that are built for a recipe.
    ///
    /// # Errors
    ///
    /// Those of [`Snapshot::open`].
    pub fn open_with(bytes: B, max_recipe_points: u32) -> Result<Snapshot<B>, Error> {
        let data = bytes.as_ref();
        let (header, sections) = layout::read(data)?;
        let backends = Backends::read(data, &sections.backends, &header)?;
        let starts = backends.chain_starts(data, &header)?;
        let features = match &sections.features {
            Some(section) => tables::read_features(data, section, &header)?,
            None => Vec::new(),
        };
        let totals = totals(data, &header, &backends, &starts);
        let given: u64 = totals.iter().sum();
        if given != u64::from(header.points) {
            let reason = format!("{}, the weights give {given}", header.points);
            return Err(Error::format("number of points", 32, reason));
        }
        let points = match (sections.points, &sections.fingerprint) {
            (None, Some(section)) => {
                if header.points > max_recipe_points {
                    return Err(Error::TooManyPoints { points: header.points, limit: max_recipe_points });
                }
                Points::Built(points::place(data, section, &header, &starts, &totals)?)
            }
            (section, _) => {
                let section = section.unwrap_or_default();
                points::check(data, &section, &header, &starts, &totals)?;
                Points::InFile(section)
            }
        };
        let placed = tables::placed(data, &backends, &header);
        let declared = match &sections.views {
            Some(section) => {
                let packed = points.packed(data, &header);
                let members = |set| members(data, &placed, &features, set);
                views::read(data, section, &header, features.len(), &packed, &totals, members)?
            }
            None => Vec::new(),
        };
        Ok(Snapshot { header, backends, features, views: declared, placed, points, bytes })
    }

    /// Returns the bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Returns the version of the algorithm that placed the points.
    pub fn version(&self) -> Version {
        self.header.version
    }

    /// Returns what the identities look like.
    pub fn identity(&self) -> Identity {
        self.header.identity
    }

    /// Returns the number of backends, drained ones included.
    pub fn len(&self) -> usize {
        self.header.backends
    }

    /// Says that there are no backends.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of points, trimmed ones included.
    pub fn points(&self) -> u32 {
        self.header.points
    }

    /// Returns the backend with a number, counted from 0 in ring order.
    ///
    /// # Panics
    ///
    /// Where there is no such backend.
    pub fn backend(&self, number: usize) -> Backend<'_> {
        let data = self.bytes();
        assert!(number < self.len(), "backend {number} of {}", self.len());
        Backend {
            identity: text(self.backends.identity(data, number)),
            weight: self.backends.weight(data, number),
            zone: text(self.backends.zone(data, number)),
        }
    }

    /// Returns all backends in ring order.
    pub fn backends(&self) -> impl ExactSizeIterator<Item = Backend<'_>> {
        (0..self.len()).map(move |number| self.backend(number))
    }

    /// Returns the names of the features that the ring declares, ascending.
    pub fn features(&self) -> impl ExactSizeIterator<Item = &str> {
        self.features.iter().map(move |feature| text(&self.bytes()[feature.name.clone()]))
    }

    /// Returns the ring of the backends that have all of these features. Keep it for many questions: with features it
    /// takes the time and memory of a bit for each backend.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownFeature`].
    pub fn ring<S: AsRef<str>>(&self, features: &[S]) -> Result<Ring<'_>, Error> {
        let data = self.bytes();
        let mut set = 0u64;
        for name in features {
            let name = name.as_ref();
            let known = |feature: &Feature| data[feature.name.clone()].cmp(name.as_bytes());
            match self.features.binary_search_by(known) {
                Ok(number) => set |= 1 << number,
                Err(_) => return Err(Error::UnknownFeature(name.to_owned())),
            }
        }
        let members = if set == 0 { None } else { Some(members(data, &self.placed, &self.features, set)) };
        let view = self.views.binary_search_by_key(&set, |view| view.features);
        let trims = view.map_or(&[][..], |number| &self.views[number].trims);
        Ok(Ring::new(self.points.packed(data, &self.header), &self.placed, members, trims))
    }

    /// Returns the backend that a key belongs to, `None` where no backend with the features takes keys.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownFeature`].
    pub fn owner(&self, key: &[u8], features: &[&str]) -> Result<Option<Backend<'_>>, Error> {
        let owner = self.ring(features)?.owner(position(key));
        Ok(owner.map(|number| self.backend(number)))
    }
}

impl Points {
    fn packed<'a>(&'a self, data: &'a [u8], header: &Header) -> Packed<'a> {
        let section = match self {
            Points::InFile(range) => &data[range.clone()],
            Points::Built(section) => section,
        };
        Packed::new(section, Geometry::new(header.points, header.backends))
    }
}

/// Returns how many points each backend has by its weight.
fn totals(data: &[u8], header: &Header, backends: &Backends, starts: &[u32]) -> Vec<u64> {
    let total = |(i, &start): (usize, &u32)| match header.quota(backends.weight(data, i)) {
        quota if start == FIXED_POINT => quota.min(1),
        quota => quota,
    };
    starts.iter().enumerate().map(total).collect()
}

/// Returns the backends of a set that have all features of another.
fn members(data: &[u8], placed: &[u8], features: &[Feature], set: u64) -> Vec<u8> {
    let mut members = placed.to_vec();
    for (_, feature) in features.iter().enumerate().filter(|&(number, _)| set >> number & 1 != 0) {
        for (member, has) in members.iter_mut().zip(&data[feature.members.clone()]) {
            *member &= has;
        }
    }
    members
}

/// Names and identities have been checked to be ASCII.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
