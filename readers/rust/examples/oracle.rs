// SPDX-License-Identifier: Apache-2.0

//! Answers questions of the tests in `readers`, which compare all readers: `oracle open|decide|follow FILE`.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use ringwright::{Directory, Error, Role, State};

#[path = "../tests/common/mod.rs"]
mod common;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let out = &mut BufWriter::new(io::stdout().lock());
    let content = common::read(&arguments[2]);
    match arguments[1].as_str() {
        "open" => open(&content, out),
        "decide" => decide(&String::from_utf8_lossy(&content), out),
        "follow" => follow(&String::from_utf8_lossy(&content), out),
        other => panic!("unknown command {other}"),
    }
}

/// For each snapshot, in front of which stands its length in four bytes, prints its summary or that it is refused.
fn open(mut content: &[u8], out: &mut impl Write) -> io::Result<()> {
    while content.len() >= 4 {
        let (length, rest) = content.split_at(4);
        let (data, behind) = rest.split_at(u32::from_le_bytes(length.try_into().expect("four bytes")) as usize);
        match common::summary(data) {
            Some(sum) => writeln!(out, "{sum:08x}")?,
            None => writeln!(out, "refused")?,
        }
        content = behind;
    }
    Ok(())
}

/// For each line of directory, datacenter, features, count and key in hex, prints the decisions.
fn decide(content: &str, out: &mut impl Write) -> io::Result<()> {
    let mut loaded: Option<(String, Result<Arc<State>, Error>)> = None;
    for line in content.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let place = fields[..2].join("\t");
        if loaded.as_ref().map_or(true, |(at, _)| *at != place) {
            loaded = Some((place, Directory::new(fields[0]).datacenter(fields[1].trim_matches('-')).load(None)));
        }
        let features = common::words(fields[2]);
        match &loaded {
            Some((_, Ok(state))) => {
                let decisions = state.decide(&common::unhex(fields[4]), &features, fields[3].parse().expect("a count"));
                match decisions {
                    Ok(decisions) if decisions.is_empty() => write!(out, "nobody")?,
                    Ok(decisions) => decisions.iter().try_for_each(|d| {
                        let role = if d.role == Role::Stable { "stable" } else { "candidate" };
                        let (b, r) = (d.backend, d.reference);
                        let names = format!("{}|{}|{}|{}", b.identity, d.address, b.zone, b.weight);
                        write!(out, "{names}|{role}|{}|{}|{}|{} ", r.revision, r.digest, d.generation, d.failover)
                    })?,
                    Err(Error::UnknownFeature(_)) => write!(out, "unknown feature")?,
                    Err(error) => panic!("{error}"),
                }
            }
            _ => write!(out, "not loaded")?,
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Loads each directory on top of what the ones before left, and prints what is loaded then.
fn follow(content: &str, out: &mut impl Write) -> io::Result<()> {
    let mut state: Option<Arc<State>> = None;
    for line in content.lines() {
        let outcome = match Directory::new(line).load(state.as_ref()) {
            Ok(next) => {
                state = Some(next);
                "loaded"
            }
            Err(Error::Stale { .. }) => "stale",
            Err(_) => "refused",
        };
        let routing = state.as_ref().map(|state| state.routing());
        let age = routing.map_or("none".to_owned(), |r| format!("{} {} {}", r.uid, r.leader_epoch, r.generation));
        writeln!(out, "{outcome} {age}")?;
    }
    Ok(())
}
