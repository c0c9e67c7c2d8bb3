// SPDX-License-Identifier: Apache-2.0

use std::sync::Arc;

use crate::bytes::{has_bit, set_bit};
use crate::error::Error;
use crate::identity::Identity;
use crate::ring::Ring;
use crate::routing::{Reference, Routing, Split};
use crate::snapshot::{position, Backend, Snapshot};
use crate::split::bucket;

/// Which of the two rings of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The ring that answers, but for the keys that the split sends to the candidate.
    Stable,
    /// The ring that the migration goes to.
    Candidate,
}

/// A backend that is to take a key, and the ring that said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'a> {
    /// The backend.
    pub backend: Backend<'a>,
    /// Where to connect: what `routing.json` gives, else the identity where that is an address, else empty.
    pub address: &'a str,
    /// Which ring answered.
    pub role: Role,
    /// Names the snapshot of that ring.
    pub reference: &'a Reference,
    /// The generation of `routing.json`.
    pub generation: u64,
    /// The owner of the key was passed over, because it is down and others are not.
    pub failover: bool,
}

/// A snapshot with what `routing.json` says of it.
#[derive(Clone, Debug)]
pub struct LoadedRing {
    snapshot: Arc<Snapshot>,
    reference: Reference,
    /// A bit for each backend that is down; empty where none is.
    down: Vec<u8>,
}

impl LoadedRing {
    /// Backends that are down and not on the ring have no effect.
    pub(crate) fn new(snapshot: Arc<Snapshot>, reference: Reference, down: &[String]) -> LoadedRing {
        let mut bits = Vec::new();
        let is_down = |identity: &str| down.binary_search_by(|other| other.as_str().cmp(identity)).is_ok();
        for (number, _) in snapshot.backends().enumerate().filter(|(_, backend)| is_down(backend.identity)) {
            bits.resize((snapshot.len() + 7) / 8, 0);
            set_bit(&mut bits, number);
        }
        LoadedRing { snapshot, reference, down: bits }
    }

    /// Returns the ring itself.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns what `routing.json` says of it.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// Says whether a backend is down.
    pub fn is_down(&self, backend: usize) -> bool {
        !self.down.is_empty() && has_bit(&self.down, backend)
    }

    /// Returns the owner of a position and those that follow, and whether the owner was passed over. Those that are down are
    /// passed over, unless all are.
    fn owners(&self, ring: &Ring<'_>, position: u32, n: usize) -> (Vec<usize>, bool) {
        if self.down.is_empty() {
            return (ring.owners(position, n, |_| false), false);
        }
        let up = ring.owners(position, n, |backend| self.is_down(backend));
        if up.is_empty() {
            return (ring.owners(position, n, |_| false), false);
        }
        (up, ring.owner(position).map_or(false, |owner| self.is_down(owner)))
    }
}

/// What a directory held at one moment. It never changes.
#[derive(Clone, Debug)]
pub struct State {
    routing: Routing,
    /// The SHA-256 of `routing.json`, by which an unchanged one is recognised.
    source: [u8; 32],
    stable: LoadedRing,
    candidate: Option<LoadedRing>,
    seed: u32,
    basis_points: u32,
}

impl State {
    pub(crate) fn new(
        routing: Routing,
        source: [u8; 32],
        stable: LoadedRing,
        candidate: Option<LoadedRing>,
        datacenter: &str,
    ) -> State {
        let split = routing.split.as_ref();
        let seed = split.map_or(0, |split| split.seed);
        let basis_points = split.map_or(0, |split: &Split| split.basis_points(datacenter));
        State { routing, source, stable, candidate, seed, basis_points }
    }

    pub(crate) fn is_from(&self, source: &[u8; 32]) -> bool {
        self.source == *source
    }

    /// Returns the loaded snapshot that a reference names.
    pub(crate) fn find(&self, reference: &Reference) -> Option<Arc<Snapshot>> {
        let is_it = |ring: &&LoadedRing| ring.reference.digest == reference.digest && ring.reference.version == reference.version;
        let mut rings = Some(&self.stable).into_iter().chain(&self.candidate);
        rings.find(is_it).map(|ring| Arc::clone(&ring.snapshot))
    }

    /// Returns the content of `routing.json`.
    pub fn routing(&self) -> &Routing {
        &self.routing
    }

    /// Returns the ring that answers, but for the keys of the candidate.
    pub fn stable(&self) -> &LoadedRing {
        &self.stable
    }

    /// Returns the ring that a migration goes to.
    pub fn candidate(&self) -> Option<&LoadedRing> {
        self.candidate.as_ref()
    }

    /// Returns how many of 10,000 buckets the candidate answers here.
    pub fn basis_points(&self) -> u32 {
        self.basis_points
    }

    /// Returns the backends for a key: the owner, then those that follow, up to `n` distinct ones. There are none where no
    /// backend has the features and a weight.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownFeature`] where the stable ring is to answer and does not declare a feature.
    pub fn decide<S: AsRef<str>>(&self, key: &[u8], features: &[S], n: usize) -> Result<Vec<Decision<'_>>, Error> {
        let at = position(key);
        if let Some(candidate) = self.candidate.as_ref().filter(|_| bucket(at, self.seed) < self.basis_points) {
            match candidate.snapshot.ring(features) {
                Ok(ring) if !ring.is_empty() => return Ok(self.decisions(Role::Candidate, candidate, &ring, at, n)),
                _ => {} // The candidate cannot answer.
            }
        }
        let ring = self.stable.snapshot.ring(features)?;
        Ok(self.decisions(Role::Stable, &self.stable, &ring, at, n))
    }

    fn decisions<'a>(
        &'a self,
        role: Role,
        loaded: &'a LoadedRing,
        ring: &Ring<'_>,
        position: u32,
        n: usize,
    ) -> Vec<Decision<'a>> {
        let (owners, failover) = loaded.owners(ring, position, n);
        let decide = |number| {
            let backend = loaded.snapshot.backend(number);
            let own = if loaded.snapshot.identity() == Identity::Name { "" } else { backend.identity };
            let address = self.routing.addresses.get(backend.identity).map_or(own, String::as_str);
            Decision { backend, address, role, reference: &loaded.reference, generation: self.routing.generation, failover }
        };
        owners.into_iter().map(decide).collect()
    }
}
