// SPDX-License-Identifier: Apache-2.0

//! Where the files of a directory lie between two swaps of its volume.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::routing::{Slot, MAX_CHUNKS};

pub(crate) const ROUTING_FILE: &str = "routing.json";

const ROUTING_FOLDER: &str = "routing";
const DATA_LINK: &str = "..data";

/// Each `..data` link is followed once, so that a swap while files are read cannot mix those of two moments. Two moments of a
/// directory are equal if no swap was between them.
#[derive(PartialEq, Eq)]
pub(crate) struct Moment {
    root: PathBuf,
    routing: PathBuf,
    slots: [Vec<PathBuf>; 2],
}

impl Moment {
    pub(crate) fn of(directory: &Path) -> Moment {
        let root = follow(directory.to_owned());
        let folders = |slot: Slot| (0..MAX_CHUNKS).map(|chunk| follow(root.join(slot.folder(chunk)))).collect();
        let slots = [folders(Slot::A), folders(Slot::B)];
        Moment { routing: follow(root.join(ROUTING_FOLDER)), root, slots }
    }

    pub(crate) fn read_routing(&self, limit: u64) -> Result<Vec<u8>, Error> {
        self.read_first(&self.routing, ROUTING_FILE, limit)
    }

    pub(crate) fn read_chunk(&self, slot: Slot, chunk: usize, limit: u64) -> Result<Vec<u8>, Error> {
        self.read_first(&self.slots[slot as usize][chunk], &slot.file(chunk), limit)
    }

    /// Reads a file of the directory or, where it has none, of a folder in it.
    fn read_first(&self, folder: &Path, name: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let found = match read(&self.root.join(name), name, limit)? {
            None => read(&folder.join(name), name, limit)?,
            found => found,
        };
        found.ok_or_else(|| Error::load(name, "it is missing"))
    }
}

fn follow(path: PathBuf) -> PathBuf {
    match fs::read_link(path.join(DATA_LINK)) {
        Ok(target) => path.join(target),
        Err(_) => path,
    }
}

/// Returns the bytes of a regular file, `None` where there is no file.
fn read(path: &Path, name: &str, limit: u64) -> Result<Option<Vec<u8>>, Error> {
    read_regular(path, name, limit).or_else(|error| match error {
        ReadError::Io(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        ReadError::Io(error) => Err(Error::load(name, error.to_string())),
        ReadError::Refused(error) => Err(error),
    })
}

enum ReadError {
    Io(std::io::Error),
    Refused(Error),
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> ReadError {
        ReadError::Io(error)
    }
}

fn read_regular(path: &Path, name: &str, limit: u64) -> Result<Option<Vec<u8>>, ReadError> {
    let refuse = |reason: String| Err(ReadError::Refused(Error::load(name, reason)));
    let info = fs::metadata(path)?;
    if !info.is_file() {
        return refuse("it is no regular file".into()); // Opening a pipe would block for ever.
    }
    if info.len() > limit {
        return refuse(format!("it has {} bytes, {limit} are left of the limit", info.len()));
    }
    let mut data = Vec::with_capacity(info.len() as usize + 1);
    File::open(path)?.take(info.len() + 1).read_to_end(&mut data)?;
    if data.len() as u64 > info.len() {
        return refuse("it grew while it was read".into());
    }
    Ok(Some(data))
}
