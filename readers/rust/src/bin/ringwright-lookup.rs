// SPDX-License-Identifier: Apache-2.0

//! Says which backends take keys, by the files of a ring in a directory.

#![forbid(unsafe_code)]

use std::env;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;

use ringwright::{Directory, Role};

const USAGE: &str = "usage: ringwright-lookup [--datacenter NAME] [--features A,B] [-n COUNT] DIR KEY...

Prints the backends for each key, the owner first: key, identity, address, zone, stable or candidate.
";

#[derive(Default)]
struct Arguments {
    datacenter: String,
    features: Vec<String>,
    count: usize,
    directory: Vec<u8>,
    keys: Vec<Vec<u8>>,
}

fn main() -> ExitCode {
    let arguments = match parse(env::args_os().skip(1).map(OsStringExt::into_vec)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(reason) => {
            eprint!("error: {reason}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match lookup(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns `None` where help is asked for.
fn parse(mut args: impl Iterator<Item = Vec<u8>>) -> Result<Option<Arguments>, String> {
    let mut parsed = Arguments { count: 1, ..Arguments::default() };
    let mut plain = Vec::new();
    while let Some(arg) = args.next() {
        let mut value = || {
            let value = args.next().and_then(|value| String::from_utf8(value).ok());
            value.ok_or_else(|| format!("{} needs a value", String::from_utf8_lossy(&arg)))
        };
        match arg.as_slice() {
            b"-h" | b"--help" => return Ok(None),
            b"--datacenter" => parsed.datacenter = value()?,
            b"--features" => parsed.features = value()?.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            b"-n" => {
                let count = value()?;
                parsed.count = count.parse().ok().filter(|&n| n > 0).ok_or(format!("-n is {count:?}, not at least 1"))?;
            }
            b"--" => plain.extend(args.by_ref()),
            other if other.starts_with(b"-") => return Err(format!("unknown option {}", String::from_utf8_lossy(other))),
            _ => plain.push(arg),
        }
    }
    if plain.len() < 2 {
        return Err("DIR and KEY are missing".into());
    }
    parsed.directory = plain.remove(0);
    parsed.keys = plain;
    Ok(Some(parsed))
}

/// Returns whether every key has a backend.
fn lookup(arguments: &Arguments) -> Result<bool, ringwright::Error> {
    let directory = Directory::new(std::ffi::OsStr::from_bytes(&arguments.directory)).datacenter(&arguments.datacenter);
    let state = directory.load(None)?;
    let mut all = true;
    for key in &arguments.keys {
        let shown = String::from_utf8_lossy(key);
        let decisions = state.decide(key, &arguments.features, arguments.count)?;
        if decisions.is_empty() {
            eprintln!("error: {shown}: no backend takes it");
            all = false;
        }
        for d in decisions {
            let role = if d.role == Role::Stable { "stable" } else { "candidate" };
            let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
            println!("{shown}\t{}\t{}\t{}\t{role}", d.backend.identity, or_dash(d.address), or_dash(d.backend.zone));
        }
    }
    Ok(all)
}
