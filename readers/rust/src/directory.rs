// SPDX-License-Identifier: Apache-2.0

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Error;
use crate::layout::Version;
use crate::moment::{Moment, ROUTING_FILE};
use crate::routing::{Reference, Routing, MAX_BYTES};
use crate::sha256::sha256;
use crate::snapshot::{digest, Snapshot, MAX_RECIPE_POINTS};
use crate::state::{LoadedRing, State};

/// The largest snapshot that is read.
pub const MAX_SNAPSHOT_BYTES: u64 = 512 << 20;

/// What a slot without a ring holds.
const MARKER: &[u8] = b"\x89RWNONE\n";

/// How often a load starts again because the volume was swapped under it.
const TRIES: usize = 4;

/// The directory into which the ConfigMaps of a ring are mounted: all in one folder, or each in one of its own.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
    datacenter: String,
    max_snapshot_bytes: u64,
    max_recipe_points: u32,
}

impl Directory {
    /// Names a directory, which need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Directory {
        Directory {
            path: path.into(),
            datacenter: String::new(),
            max_snapshot_bytes: MAX_SNAPSHOT_BYTES,
            max_recipe_points: MAX_RECIPE_POINTS,
        }
    }

    /// Says where this reader runs, which decides the split of a migration.
    #[must_use]
    pub fn datacenter(self, name: impl Into<String>) -> Directory {
        Directory { datacenter: name.into(), ..self }
    }

    /// Sets the largest snapshot that is read, [`MAX_SNAPSHOT_BYTES`] otherwise.
    #[must_use]
    pub fn max_snapshot_bytes(self, bytes: u64) -> Directory {
        Directory { max_snapshot_bytes: bytes, ..self }
    }

    /// Sets how many points are built for a recipe, [`MAX_RECIPE_POINTS`] otherwise.
    #[must_use]
    pub fn max_recipe_points(self, points: u32) -> Directory {
        Directory { max_recipe_points: points, ..self }
    }

    /// Returns what the directory holds, the previous state itself where nothing changed. It takes time for the whole
    /// snapshot, so a server calls it beside its requests.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`] where the directory goes back behind the previous state, and others where files are missing, of
    /// different moments, or corrupt. The previous state then stays good.
    pub fn load(&self, previous: Option<&Arc<State>>) -> Result<Arc<State>, Error> {
        for _ in 1..TRIES {
            let moment = Moment::of(&self.path);
            let loaded = self.load_moment(&moment, previous);
            if loaded.is_ok() || moment == Moment::of(&self.path) {
                return loaded;
            }
        }
        self.load_moment(&Moment::of(&self.path), previous)
    }

    fn load_moment(&self, moment: &Moment, previous: Option<&Arc<State>>) -> Result<Arc<State>, Error> {
        let data = moment.read_routing(MAX_BYTES)?;
        let source = sha256(&data);
        if let Some(previous) = previous.filter(|previous| previous.is_from(&source)) {
            return Ok(Arc::clone(previous));
        }
        let routing = Routing::parse(&data)?;
        check_succession(&routing, previous)?;
        let stable = self.ring(moment, &routing.stable, &routing, previous)?;
        let candidate = match &routing.candidate {
            Some(reference) => Some(self.ring(moment, reference, &routing, previous)?),
            None => None,
        };
        Ok(Arc::new(State::new(routing, source, stable, candidate, &self.datacenter)))
    }

    fn ring(
        &self,
        moment: &Moment,
        reference: &Reference,
        routing: &Routing,
        previous: Option<&Arc<State>>,
    ) -> Result<LoadedRing, Error> {
        let loaded = previous.and_then(|previous| previous.find(reference));
        let snapshot = match loaded {
            Some(loaded) => loaded,
            None => Arc::new(self.open(moment, reference)?),
        };
        Ok(LoadedRing::new(snapshot, reference.clone(), &routing.down))
    }

    fn open(&self, moment: &Moment, reference: &Reference) -> Result<Snapshot, Error> {
        let mut data = Vec::new();
        for chunk in 0..reference.chunks {
            let part = moment.read_chunk(reference.slot, chunk, self.max_snapshot_bytes - data.len() as u64)?;
            if part.is_empty() {
                let reason = format!("it is empty, so of another moment than {ROUTING_FILE}");
                return Err(Error::load(reference.slot.file(chunk), reason));
            }
            if chunk == 0 {
                data = part;
            } else {
                data.extend_from_slice(&part);
            }
        }
        let wrong = |reason: String| Error::load(reference.slot.file(0), reason);
        if data == MARKER {
            return Err(wrong(format!("the slot is empty, {ROUTING_FILE} names {}", reference.digest)));
        }
        let found = digest(&data);
        if found != reference.digest {
            return Err(wrong(format!("the digest of all chunks is {found}, {ROUTING_FILE} names {}", reference.digest)));
        }
        let snapshot = Snapshot::open_with(data, self.max_recipe_points).map_err(|error| wrong(error.to_string()))?;
        let version = match snapshot.version() {
            Version::V1 => "V1",
            Version::V2 => "V2",
            Version::V3 => "V3",
        };
        if version != reference.version {
            return Err(wrong(format!("its algorithm is {version}, {ROUTING_FILE} says {}", reference.version)));
        }
        Ok(snapshot)
    }
}

/// Refuses what is of another ring, or was written before what is loaded. A HashRing that was made again has another UID and
/// may count anew.
fn check_succession(routing: &Routing, previous: Option<&Arc<State>>) -> Result<(), Error> {
    let loaded = match previous {
        Some(previous) => previous.routing(),
        None => return Ok(()),
    };
    if routing.ring != loaded.ring {
        let reason = format!("it is of ring {}, the loaded one is {}", routing.ring, loaded.ring);
        return Err(Error::load(ROUTING_FILE, reason));
    }
    let age = |routing: &Routing| (routing.leader_epoch, routing.generation);
    if routing.uid == loaded.uid && age(routing) < age(loaded) {
        return Err(Error::Stale { found: age(routing), loaded: age(loaded) });
    }
    Ok(())
}
