// SPDX-License-Identifier: Apache-2.0

//! The reader against the files of `readers/testdata` and the vectors of other implementations.

mod common;

use common::{files, mutate, read, read_text, readers, summary, unhex, verdicts, words};
use ringwright::{bucket, digest, position, Error, Snapshot};

fn numbers(fields: &[&str]) -> Vec<u32> {
    fields.iter().map(|field| field.parse().expect("a number")).collect()
}

#[test]
fn answers() {
    let rings = files(&readers("testdata/rings"), ".snap");
    assert!(rings.len() >= 16, "{} rings", rings.len());
    for path in rings {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let snapshot = Snapshot::open(read(&path)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let text = read_text(path.with_file_name(format!("{}.txt", name.trim_end_matches("-recipe"))));
        check_answers(&name, &snapshot, &text);
    }
}

fn check_answers(name: &str, snapshot: &Snapshot, text: &str) {
    let none: [&str; 0] = [];
    let mut backends = snapshot.backends();
    let (mut ring, mut questions) = (snapshot.ring(&none).expect("a ring"), 0);
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        match fields[0] {
            "digest" if name.ends_with("-recipe") => {}
            "digest" => assert_eq!(digest(snapshot.bytes()), fields[1], "{name}"),
            "points" => assert_eq!(snapshot.points().to_string(), fields[1], "{name}"),
            "backend" => {
                let backend = backends.next().expect("as many backends");
                let zone = if backend.zone.is_empty() { "-" } else { backend.zone };
                assert_eq!(format!("backend {} {} {zone}", backend.identity, backend.weight), line, "{name}");
            }
            "features" => assert_eq!(snapshot.features().collect::<Vec<_>>(), words(fields[1]), "{name}"),
            "view" => {
                ring = snapshot.ring(&words(fields[1])).expect("features of the ring");
                assert_eq!(ring.len().to_string(), fields[2], "{name}: {line}");
            }
            "owners" => {
                let numbers = numbers(&fields[1..]);
                let want: Vec<usize> = numbers[1..].iter().map(|&owner| owner as usize).collect();
                assert_eq!(ring.successors(numbers[0]).take(4).collect::<Vec<_>>(), want, "{name}: {line}");
                assert_eq!(ring.owner(numbers[0]), want.first().copied(), "{name}: {line}");
                questions += 1;
            }
            _ => panic!("{name}: {line}"),
        }
    }
    assert!(backends.next().is_none() && questions > 20, "{name}: {questions} questions");
}

#[test]
fn owners_skip() {
    let snapshot = Snapshot::open(read(readers("testdata/rings/fleet.snap"))).expect("a ring");
    let ring = snapshot.ring(&["a"]).expect("a feature of the ring");
    let at = position(b"key");
    let four = ring.owners(at, 4, |_| false);
    assert_eq!(ring.owners(at, 2, |owner| owner == four[0] || owner == four[2]), [four[1], four[3]]);
    assert_eq!(ring.owners(at, 0, |_| false), []);
    assert_eq!(ring.owners(at, 10_000, |_| false).len(), 150);
    assert_eq!(ring.successors(at).len(), 150);
    let owner = snapshot.owner(b"key", &["a"]).expect("a feature of the ring");
    assert_eq!(owner, Some(snapshot.backend(four[0])));
}

#[test]
fn unknown_features() {
    let snapshot = Snapshot::open(read(readers("testdata/rings/fleet.snap"))).expect("a ring");
    assert_eq!(snapshot.owner(b"key", &["a", "tape"]), Err(Error::UnknownFeature("tape".into())));
    assert_eq!(snapshot.owner(b"key", &["c"]), Ok(None), "nobody has c");
}

#[test]
fn recipe_limit() {
    let data = read(readers("testdata/rings/fleet-recipe.snap"));
    let points = Snapshot::open(&data).expect("a ring").points();
    assert!(Snapshot::open_with(&data, points).is_ok());
    let refused = Snapshot::open_with(&data, points - 1).map(|_| ());
    assert_eq!(refused, Err(Error::TooManyPoints { points, limit: points - 1 }));
}

#[test]
fn errors_name_field_and_offset() {
    let mut data = read(readers("testdata/rings/worked.snap"));
    data[8] = 2;
    let error = Snapshot::open(&data).map(|_| ()).expect_err("a future version");
    assert_eq!(error.to_string(), "snapshot: format version at offset 8: 2 is not known, only 1");
}

#[test]
fn same_verdicts_as_go() {
    let mut mutated = 0;
    for line in read_text(readers("testdata/corruption.txt")).lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        match fields[..] {
            ["mutate", ring, mutation, ..] => {
                let good = read(readers(&format!("testdata/rings/{ring}.snap")));
                let mut sums = Vec::new();
                mutate(mutation, &good, |data| sums.push(summary(&data)));
                assert_eq!(verdicts(&sums), fields[3..].join(" "), "{ring} {mutation}");
                mutated += sums.len();
            }
            ["crafted", name, want, hex] => {
                let found = summary(&unhex(hex)).map_or("refused".to_owned(), |sum| format!("{sum:08x}"));
                assert_eq!(found, want, "{name}");
            }
            _ => panic!("{line}"),
        }
    }
    assert!(mutated > 10_000, "{mutated} mutations");
}

#[test]
fn buckets() {
    let text = read_text(readers("../pkg/routing/testdata/buckets.json"));
    let number = |line: &str, field: &str| -> u32 {
        let behind = line.split(&format!("\"{field}\":")).nth(1).expect("a field");
        behind.split([',', '}']).next().expect("a value").parse().expect("a number")
    };
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('{')).collect();
    assert!(rows.len() > 20);
    for row in rows {
        assert_eq!(bucket(number(row, "hash"), number(row, "seed")), number(row, "bucket"), "{row}");
    }
}

/// Returns where NGINX connects: names resolved, port 80 where there is none.
fn connects(identity: &str) -> String {
    let (host, port) = match identity.rsplit_once(':') {
        Some(parts) if !identity.ends_with(']') => parts,
        _ => (identity, "80"),
    };
    match host {
        "localhost" => format!("127.0.0.1:{port}"),
        "mixedcase.test" | "MixedCase.test" => format!("127.0.0.23:{port}"),
        _ => format!("{host}:{port}"),
    }
}

/// What NGINX, pingora and this project's Go code own, by the points that this reader placed.
#[test]
fn vectors() {
    let mut count = 0;
    for kind in ["nginx", "pingora", "ringwright"] {
        for path in files(&readers("../pkg/ring/testdata").join(kind), ".txt") {
            let name = format!("{kind}-{}", path.file_stem().expect("a name").to_string_lossy());
            let snapshot = Snapshot::open(read(readers(&format!("testdata/vectors/{name}.snap")))).expect("a ring");
            check_vectors(kind, &name, &snapshot, &read_text(&path));
            count += 1;
        }
    }
    assert_eq!(count, 15);
}

fn check_vectors(kind: &str, name: &str, snapshot: &Snapshot, text: &str) {
    let none: [&str; 0] = [];
    let (mut ring, mut keys) = (snapshot.ring(&none).expect("a ring"), 0);
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        match fields[0] {
            "recipe" => assert_eq!(digest(snapshot.bytes()), fields[2], "{name}"),
            "view" => ring = snapshot.ring(&words(fields[1])).expect("features of the ring"),
            "key" => {
                let (at, want) = match kind {
                    "ringwright" => (u32::from_str_radix(fields[1], 16).expect("a position"), &fields[3..]),
                    _ => (position(&unhex(fields[1])), &fields[2..]),
                };
                let found = ring.successors(at).take(want.len()).map(|owner| snapshot.backend(owner).identity);
                let found: Vec<String> = match kind {
                    "nginx" => found.map(connects).collect(),
                    _ => found.map(str::to_owned).collect(),
                };
                assert_eq!(found, want, "{name}: {line}");
                keys += 1;
            }
            _ => {}
        }
    }
    assert!(keys >= 30, "{name}: {keys} keys");
}
