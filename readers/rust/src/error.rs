// SPDX-License-Identifier: Apache-2.0

use std::fmt;

/// What can be wrong: with a file, with a directory, with a question.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A snapshot breaks a rule of the format.
    Format {
        /// What is wrong.
        field: &'static str,
        /// Where it stands in the file.
        offset: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A snapshot without points asks for more than the reader is willing to build.
    TooManyPoints {
        /// What the snapshot asks for.
        points: u32,
        /// What the reader is willing to build.
        limit: u32,
    },
    /// A question names a feature that the ring does not declare.
    UnknownFeature(String),
    /// A `routing.json` breaks a rule.
    Routing {
        /// The path of the field, as in `stable.slot`; empty where it is the file as a whole.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A directory holds nothing that can be switched to now.
    Load {
        /// The name of the file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A directory goes back behind what was loaded before.
    Stale {
        /// `leaderEpoch` and `generation` in the directory.
        found: (u64, u64),
        /// The same of what is loaded.
        loaded: (u64, u64),
    },
}

impl Error {
    pub(crate) fn format(field: &'static str, offset: usize, reason: impl Into<String>) -> Error {
        Error::Format { field, offset, reason: reason.into() }
    }

    pub(crate) fn routing(field: impl Into<String>, reason: impl Into<String>) -> Error {
        Error::Routing { field: field.into(), reason: reason.into() }
    }

    pub(crate) fn load(file: impl Into<String>, reason: impl Into<String>) -> Error {
        Error::Load { file: file.into(), reason: reason.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Format { field, offset, reason } => write!(f, "snapshot: {field} at offset {offset}: {reason}"),
            Error::TooManyPoints { points, limit } => {
                write!(f, "snapshot: {points} points are to be built, the limit is {limit}")
            }
            Error::UnknownFeature(feature) => write!(f, "feature {feature:?} is not declared by the ring"),
            Error::Routing { field, reason } if field.is_empty() => write!(f, "routing.json: {reason}"),
            Error::Routing { field, reason } => write!(f, "routing.json: {field}: {reason}"),
            Error::Load { file, reason } => write!(f, "{file}: {reason}"),
            Error::Stale { found, loaded } => {
                write!(f, "routing.json: (leaderEpoch, generation) is {found:?}, the loaded one is {loaded:?}")
            }
        }
    }
}

impl std::error::Error for Error {}
