// SPDX-License-Identifier: Apache-2.0

use std::collections::HashMap;

use crate::crc::crc32;
use crate::error::Error;
use crate::json::{self, Json};
use crate::split::BUCKETS;

/// The largest `routing.json` that is read.
pub(crate) const MAX_BYTES: u64 = 512 << 10;
pub(crate) const MAX_CHUNKS: usize = 16;

const API_VERSION: &str = "ringwright.dev/v1alpha1";
const MAX_NAMESPACE_BYTES: usize = 63;
const MAX_NAME_BYTES: usize = 253;
const MAX_DATACENTERS: usize = 1024;
const MAX_DATACENTER_BYTES: usize = 63;
const ANY_DATACENTER: &str = "*";
const MAX_NUMBER: u64 = i64::MAX as u64;

/// One of the two places in which a snapshot is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// `ring-a.snap`
    A,
    /// `ring-b.snap`
    B,
}

impl Slot {
    fn letter(self) -> char {
        match self {
            Slot::A => 'a',
            Slot::B => 'b',
        }
    }

    /// Returns the folder that a chunk may lie in: `a`, `a-1`.
    pub(crate) fn folder(self, chunk: usize) -> String {
        match chunk {
            0 => self.letter().to_string(),
            _ => format!("{}-{chunk}", self.letter()),
        }
    }

    /// Returns the file of a chunk: `ring-a.snap`, `ring-a.snap.1`.
    pub(crate) fn file(self, chunk: usize) -> String {
        match chunk {
            0 => format!("ring-{}.snap", self.letter()),
            _ => format!("ring-{}.snap.{chunk}", self.letter()),
        }
    }
}

/// A snapshot and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Where it lies.
    pub slot: Slot,
    /// The digest of the whole snapshot.
    pub digest: String,
    /// The algorithm, as in `V1`.
    pub version: String,
    /// Its number among the rings of the HashRing; 0 is not known.
    pub revision: u64,
    /// Into how many files it is cut, from 1 on.
    pub chunks: usize,
}

/// Which keys the candidate answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Keeps the splits of different migrations apart.
    pub seed: u32,
    basis_points: HashMap<String, u32>,
}

impl Split {
    /// Returns how many of 10,000 buckets the candidate answers in a datacenter; the empty one has no entry of its own.
    pub fn basis_points(&self, datacenter: &str) -> u32 {
        let own = if datacenter.is_empty() { None } else { self.basis_points.get(datacenter) };
        own.or_else(|| self.basis_points.get(ANY_DATACENTER)).copied().unwrap_or(0)
    }
}

/// The content of `routing.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    /// Namespace and name of the HashRing.
    pub ring: String,
    /// The UID of the HashRing, empty where there is none.
    pub uid: String,
    /// Grows with every change of the file.
    pub generation: u64,
    /// Numbers the operators that wrote the file; 0 where there is none.
    pub leader_epoch: u64,
    /// The ring that answers.
    pub stable: Reference,
    /// The ring that a migration goes to.
    pub candidate: Option<Reference>,
    /// Which keys the candidate answers.
    pub split: Option<Split>,
    /// Where to connect to backends whose identity is not their address.
    pub addresses: HashMap<String, String>,
    /// The identities of backends that cannot serve, ascending.
    pub down: Vec<String>,
}

impl Routing {
    /// Reads the content of a `routing.json`.
    ///
    /// # Errors
    ///
    /// [`Error::Routing`] where there is a field that is not known, or a value that is not allowed.
    pub fn parse(data: &[u8]) -> Result<Routing, Error> {
        if data.len() as u64 > MAX_BYTES {
            return Err(Error::routing("", format!("{} bytes, the limit is {MAX_BYTES}", data.len())));
        }
        let document = json::parse(data).map_err(|reason| Error::routing("", reason))?;
        let mut top = Object::new(String::new(), document)?;
        let version = top.text("apiVersion")?;
        if version != API_VERSION {
            return Err(Error::routing("apiVersion", format!("{version:?}, this reader knows {API_VERSION}")));
        }
        let routing = Routing {
            ring: top.text("ring")?,
            uid: if top.has("uid") { top.text("uid")? } else { String::new() },
            generation: top.number("generation", 1, MAX_NUMBER)?,
            leader_epoch: if top.has("leaderEpoch") { top.number("leaderEpoch", 0, MAX_NUMBER)? } else { 0 },
            stable: reference(top.object("stable")?)?,
            candidate: if top.has("candidate") { Some(reference(top.object("candidate")?)?) } else { None },
            split: if top.has("split") { Some(split(top.object("split")?)?) } else { None },
            addresses: if top.has("addresses") { addresses(top.object("addresses")?)? } else { HashMap::new() },
            down: if top.has("down") { down(top.take("down")?)? } else { Vec::new() },
        };
        if top.has("checksum") {
            check_sum(&top.text("checksum")?, data)?;
        }
        top.finish()?;
        routing.check()?;
        Ok(routing)
    }

    fn check(&self) -> Result<(), Error> {
        if !is_ring(&self.ring) {
            let limits = format!("of at most {MAX_NAMESPACE_BYTES} and {MAX_NAME_BYTES} bytes");
            let shown: String = self.ring.chars().take(80).collect();
            return Err(Error::routing("ring", format!("{shown:?} is not namespace/name as Kubernetes takes them, {limits}")));
        }
        match &self.candidate {
            None if self.split.is_some() => Err(Error::routing("split", "is there without a candidate")),
            Some(candidate) if candidate.slot == self.stable.slot => Err(Error::routing("candidate.slot", "is that of stable")),
            _ => Ok(()),
        }
    }
}

/// Returns whether a text is the namespace and name of a HashRing as Kubernetes takes them.
fn is_ring(text: &str) -> bool {
    let (namespace, name) = text.split_once('/').unwrap_or(("", ""));
    namespace.len() <= MAX_NAMESPACE_BYTES && is_label(namespace) && name.len() <= MAX_NAME_BYTES && name.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// An object of the file, from which fields are taken until none may be left.
struct Object {
    path: String,
    fields: Vec<(String, Json)>,
}

impl Object {
    fn new(path: String, value: Json) -> Result<Object, Error> {
        match value {
            Json::Object(fields) => Ok(Object { path, fields }),
            _ => Err(Error::routing(path, "not an object")),
        }
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(field, _)| field == name)
    }

    fn take(&mut self, name: &str) -> Result<Json, Error> {
        match self.fields.iter().position(|(field, _)| field == name) {
            Some(at) => Ok(self.fields.swap_remove(at).1),
            None => Err(Error::routing(self.path_of(name), "is missing")),
        }
    }

    fn text(&mut self, name: &str) -> Result<String, Error> {
        match self.take(name)? {
            Json::Text(text) => Ok(text),
            _ => Err(Error::routing(self.path_of(name), "not text")),
        }
    }

    fn number(&mut self, name: &str, least: u64, most: u64) -> Result<u64, Error> {
        let value = self.take(name)?;
        number(self.path_of(name), &value, least, most)
    }

    fn object(&mut self, name: &str) -> Result<Object, Error> {
        let value = self.take(name)?;
        Object::new(self.path_of(name), value)
    }

    fn finish(&self) -> Result<(), Error> {
        match self.fields.first() {
            None => Ok(()),
            Some((name, _)) => Err(Error::routing(self.path_of(name), "this reader does not know the field")),
        }
    }
}

/// Checks that the checksum is the last field of the file in its only form, and right.
fn check_sum(digits: &str, data: &[u8]) -> Result<(), Error> {
    let field = |sum: u32| format!(",\"checksum\":\"{sum:08x}\"}}\n");
    let body = &data[..data.len().saturating_sub(field(0).len())];
    if data.ends_with(field(crc32(0, body)).as_bytes()) {
        return Ok(());
    }
    Err(Error::routing("checksum", format!("{digits:?} is wrong, or not the last field in its canonical form")))
}

fn number(path: String, value: &Json, least: u64, most: u64) -> Result<u64, Error> {
    match value {
        Json::Number(number) if (least..=most).contains(&u64::try_from(*number).unwrap_or(u64::MAX)) => Ok(*number as u64),
        _ => Err(Error::routing(path, format!("not a number from {least} to {most}"))),
    }
}

fn reference(mut fields: Object) -> Result<Reference, Error> {
    let slot = match fields.text("slot")?.as_str() {
        "a" => Slot::A,
        "b" => Slot::B,
        other => return Err(Error::routing(fields.path_of("slot"), format!("{other:?} is not a or b"))),
    };
    let digest = fields.text("digest")?;
    let hex = digest.strip_prefix("sha256:").unwrap_or("");
    if hex.len() != 64 || !hex.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c)) {
        return Err(Error::routing(fields.path_of("digest"), format!("{digest:?} is not sha256: and 64 hex digits")));
    }
    let version = fields.text("version")?;
    if version.is_empty() {
        return Err(Error::routing(fields.path_of("version"), "is empty"));
    }
    let revision = if fields.has("revision") { fields.number("revision", 0, MAX_NUMBER)? } else { 0 };
    let chunks = if fields.has("chunks") { fields.number("chunks", 2, MAX_CHUNKS as u64)? } else { 1 };
    fields.finish()?;
    Ok(Reference { slot, digest, version, revision, chunks: chunks as usize })
}

fn split(mut fields: Object) -> Result<Split, Error> {
    let seed = fields.number("seed", 0, u64::from(u32::MAX))? as u32;
    let points = fields.object("basisPoints")?;
    fields.finish()?;
    if points.fields.len() > MAX_DATACENTERS {
        return Err(Error::routing(points.path, format!("more than {MAX_DATACENTERS} entries")));
    }
    let mut basis_points = HashMap::new();
    for (name, value) in &points.fields {
        if !(1..=MAX_DATACENTER_BYTES).contains(&name.len()) {
            return Err(Error::routing(
                points.path_of(name),
                format!("the name does not have 1 to {MAX_DATACENTER_BYTES} bytes"),
            ));
        }
        basis_points.insert(name.clone(), number(points.path_of(name), value, 0, u64::from(BUCKETS))? as u32);
    }
    Ok(Split { seed, basis_points })
}

fn addresses(fields: Object) -> Result<HashMap<String, String>, Error> {
    let path = fields.path;
    let address = |(identity, value)| match value {
        Json::Text(address) => Ok((identity, address)),
        _ => Err(Error::routing(format!("{path}.{identity}"), "not text")),
    };
    fields.fields.into_iter().map(address).collect()
}

fn down(value: Json) -> Result<Vec<String>, Error> {
    let values = match value {
        Json::List(values) => values,
        _ => return Err(Error::routing("down", "not a list")),
    };
    let mut down: Vec<String> = Vec::with_capacity(values.len());
    for (i, value) in values.into_iter().enumerate() {
        match value {
            Json::Text(text) if text.as_str() > down.last().map_or("", String::as_str) => down.push(text),
            _ => return Err(Error::routing(format!("down[{i}]"), "not text, empty, or does not come after the one before")),
        }
    }
    Ok(down)
}
