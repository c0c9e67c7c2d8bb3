// SPDX-License-Identifier: Apache-2.0

//! `routing.json`, and the directory that it lies in.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::ptr;
use std::sync::Arc;

use common::{read, read_text, readers};
use ringwright::{bucket, digest, position, Directory, Error, Role, Routing, Snapshot, State, NO_FEATURES};

/// A directory that is removed in the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        let path = std::env::temp_dir().join(format!("ringwright-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        Temporary(path)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Temporary {
        fs::write(self.0.join(name), content).expect("a file");
        self
    }

    fn load(&self, previous: Option<&Arc<State>>) -> Result<Arc<State>, Error> {
        Directory::new(&self.0).load(previous)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn fleet() -> Vec<u8> {
    read(readers("testdata/rings/fleet.snap"))
}

fn routing(generation: u64, epoch: u64, more: &str) -> String {
    format!(
        "{{\"apiVersion\":\"ringwright.dev/v1alpha1\",\"ring\":\"cdn/edge\",\"generation\":{generation},\"leaderEpoch\":{epoch},\
         \"stable\":{{\"slot\":\"a\",\"digest\":\"{}\",\"version\":\"V2\",\"revision\":6}}{more}}}",
        digest(&fleet())
    )
}

/// The identities of the owners of a key in the fleet.
fn owners(key: &[u8], n: usize) -> Vec<String> {
    let snapshot = Snapshot::open(fleet()).expect("a ring");
    let owners = snapshot.ring(NO_FEATURES).expect("a ring").owners(position(key), n, |_| false);
    owners.into_iter().map(|owner| snapshot.backend(owner).identity.to_owned()).collect()
}

#[test]
fn routing_same_verdicts_as_go() {
    let good = read_text(readers("testdata/routing.json"));
    let text = read_text(readers("testdata/routing.txt"));
    assert!(text.lines().count() > 60);
    for row in text.lines() {
        let fields: Vec<&str> = row.split('\t').collect();
        let edited = good.replacen(fields[2], &fields[3].replace("\\n", "\n"), 1);
        let parsed = Routing::parse(edited.as_bytes());
        assert_eq!(parsed.is_ok(), fields[0] == "accepted", "{}: {parsed:?}", fields[1]);
    }
}

#[test]
fn routing_limit() {
    let good = read_text(readers("testdata/routing.json"));
    let blanks = (512 << 10) - good.len();
    assert!(Routing::parse((good.clone() + &" ".repeat(blanks)).as_bytes()).is_ok());
    let error = Routing::parse((good + &" ".repeat(blanks + 1)).as_bytes()).expect_err("a byte too many");
    assert_eq!(error.to_string(), "routing.json: 524289 bytes, the limit is 524288");
}

#[test]
fn routing_errors_name_the_field() {
    let text = routing(1, 0, "").replace("\"revision\":6", "\"chunks\":1");
    let error = Routing::parse(text.as_bytes()).expect_err("one chunk");
    assert_eq!(error.to_string(), "routing.json: stable.chunks: not a number from 2 to 16");
}

#[test]
fn failover() {
    let dir = Temporary::new("failover");
    let names = owners(b"key", 2);
    let address = format!(",\"addresses\":{{\"{}\":\"192.0.2.1:1\"}}", names[1]);
    dir.write("ring-a.snap", fleet()).write("routing.json", routing(1, 0, &address));
    let state = dir.load(None).expect("a ring");
    let decision = state.decide(b"key", NO_FEATURES, 1).expect("no features")[0];
    assert_eq!((decision.backend.identity, decision.address, decision.failover), (&*names[0], &*names[0], false));
    assert_eq!((decision.role, decision.reference.revision), (Role::Stable, 6));

    dir.write("routing.json", routing(2, 0, &format!("{address},\"down\":[\"{}\"]", names[0])));
    let state = dir.load(None).expect("a ring");
    let decision = state.decide(b"key", NO_FEATURES, 1).expect("no features")[0];
    assert_eq!((decision.backend.identity, decision.address, decision.failover), (&*names[1], "192.0.2.1:1", true));
}

#[test]
fn all_down_is_nobody_down() {
    let dir = Temporary::new("all-down");
    let snapshot = Snapshot::open(fleet()).expect("a ring");
    let mut down: Vec<String> = snapshot.backends().map(|backend| format!("\"{}\"", backend.identity)).collect();
    down.sort();
    dir.write("ring-a.snap", fleet()).write("routing.json", routing(1, 0, &format!(",\"down\":[{}]", down.join(","))));
    let state = dir.load(None).expect("a ring");
    let decisions = state.decide(b"key", NO_FEATURES, 2).expect("no features");
    assert_eq!(decisions.iter().map(|d| d.backend.identity).collect::<Vec<_>>(), owners(b"key", 2));
    assert!(!decisions[0].failover && state.stable().is_down(7));
}

#[test]
fn split() {
    let dir = Temporary::new("split");
    let names = read(readers("testdata/rings/v3.snap"));
    let candidate = format!(",\"candidate\":{{\"slot\":\"b\",\"digest\":\"{}\",\"version\":\"V3\"}}", digest(&names));
    let split = ",\"split\":{\"seed\":7,\"basisPoints\":{\"lab01\":5000}}";
    dir.write("ring-a.snap", fleet()).write("ring-b.snap", names).write("routing.json", routing(1, 0, &(candidate + split)));
    let here = Directory::new(&dir.0).datacenter("lab01").load(None).expect("two rings");
    let elsewhere = Directory::new(&dir.0).datacenter("lab02").load(None).expect("two rings");
    assert_eq!((here.basis_points(), elsewhere.basis_points()), (5000, 0));
    let mut of_candidate = 0;
    for key in (0..50).map(|i| format!("key-{i}").into_bytes()) {
        let role = if bucket(position(&key), 7) < 5000 { Role::Candidate } else { Role::Stable };
        let decision = here.decide(&key, NO_FEATURES, 1).expect("no features")[0];
        assert_eq!((decision.role, decision.address.is_empty()), (role, role == Role::Candidate), "a name cannot be dialled");
        assert_eq!(elsewhere.decide(&key, NO_FEATURES, 1).expect("no features")[0].role, Role::Stable);
        assert_eq!(here.decide(&key, &["a"], 1).expect("a is of the stable ring")[0].role, Role::Stable);
        assert_eq!(here.decide(&key, &["gpu"], 1).is_err(), role == Role::Stable, "gpu is of the candidate alone");
        of_candidate += u32::from(role == Role::Candidate);
    }
    assert!((10..40).contains(&of_candidate), "{of_candidate} of 50");
}

#[test]
fn candidate_without_a_backend() {
    let dir = Temporary::new("nobody");
    let candidate = format!(",\"candidate\":{{\"slot\":\"b\",\"digest\":\"{}\",\"version\":\"V2\"}}", digest(&fleet()));
    let split = ",\"split\":{\"seed\":7,\"basisPoints\":{\"*\":10000}}";
    dir.write("ring-a.snap", fleet()).write("ring-b.snap", fleet()).write("routing.json", routing(1, 0, &(candidate + split)));
    let state = dir.load(None).expect("two rings");
    assert_eq!(state.decide(b"key", &["a"], 1).expect("a feature")[0].role, Role::Candidate);
    assert_eq!(state.decide(b"key", &["c"], 1), Ok(vec![]), "nobody has c");
}

#[test]
fn keeps_and_fences() {
    let dir = Temporary::new("fences");
    let missing = dir.load(None).expect_err("nothing there");
    assert_eq!(missing.to_string(), "routing.json: it is missing");
    dir.write("ring-a.snap", fleet()).write("routing.json", routing(5, 2, ""));
    let state = dir.load(None).expect("a ring");
    assert!(Arc::ptr_eq(&dir.load(Some(&state)).expect("the same"), &state));
    for age in [(2, 4), (1, 9)] {
        dir.write("routing.json", routing(age.1, age.0, ""));
        assert_eq!(dir.load(Some(&state)).map(|_| ()), Err(Error::Stale { found: age, loaded: (2, 5) }));
    }
    dir.write("routing.json", routing(1, 3, ""));
    let newer = dir.load(Some(&state)).expect("a later leader");
    assert!(ptr::eq(newer.stable().snapshot(), state.stable().snapshot()), "an equal ring is not opened again");
}

#[test]
fn half_written() {
    let dir = Temporary::new("half-written");
    let (first, second) = (fleet()[..5000].to_vec(), fleet()[5000..].to_vec());
    let text = routing(1, 0, "").replace("\"revision\":6", "\"chunks\":2");
    dir.write("ring-a.snap", first).write("routing.json", &text);
    assert!(dir.load(None).is_err(), "the second chunk is missing");
    assert!(dir.write("ring-a.snap.1", "").load(None).is_err(), "the second chunk is empty");
    assert!(dir.write("ring-a.snap.1", &second[1..]).load(None).is_err(), "the second chunk is another one");
    dir.write("ring-a.snap.1", second).load(None).expect("both chunks");
    dir.write("routing.json", text.replace("V2", "V1"));
    assert!(dir.load(None).is_err(), "another algorithm");
}

#[test]
fn limits() {
    let dir = Temporary::new("limits");
    dir.write("ring-a.snap", fleet()).write("routing.json", routing(1, 0, ""));
    let length = fleet().len() as u64;
    assert!(Directory::new(&dir.0).max_snapshot_bytes(length).load(None).is_ok());
    assert!(Directory::new(&dir.0).max_snapshot_bytes(length - 1).load(None).is_err());
    fs::remove_file(dir.0.join("ring-a.snap")).expect("a file");
    fs::create_dir(dir.0.join("ring-a.snap")).expect("a directory");
    let error = dir.load(None).expect_err("no file");
    assert_eq!(error.to_string(), "ring-a.snap: it is no regular file");
}

fn lookup(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringwright-lookup"));
    command.arg(directory).args(arguments).output().expect("a program that runs")
}

#[test]
fn lookup_program() {
    let dir = Temporary::new("lookup");
    dir.write("ring-a.snap", fleet()).write("routing.json", routing(1, 0, ""));
    let snapshot = Snapshot::open(fleet()).expect("a ring");
    let owner = snapshot.owner(b"key", &["a"]).expect("a feature").expect("an owner");
    let ran = lookup(&dir.0, &["key", "--features", "a"]);
    let want = format!("key\t{0}\t{0}\t{1}\tstable\n", owner.identity, owner.zone);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), want);
    let nobody = lookup(&dir.0, &["key", "--features", "c"]);
    assert_eq!((nobody.status.code(), &*nobody.stderr), (Some(1), &b"error: key: no backend takes it\n"[..]));
    let misused = lookup(&dir.0, &["key", "-n", "0"]);
    assert_eq!(misused.status.code(), Some(2));
    assert!(misused.stderr.starts_with(b"error: -n is \"0\", not at least 1\n"));
}
