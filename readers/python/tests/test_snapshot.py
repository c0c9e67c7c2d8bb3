# SPDX-License-Identifier: Apache-2.0
"""The reader against the files of readers/testdata and the vectors of other implementations."""

from __future__ import annotations

import json
import unittest

from support import BUCKETS, MUTATIONS, TESTDATA, VECTORS, summary, verdicts

from ringwright import FormatError, Snapshot, UnknownFeatureError, bucket, position
from ringwright.checksum import crc32c, mix

RINGS = sorted((TESTDATA / "rings").glob("*.snap"))


def words(text: str) -> list[str]:
    return [] if text == "-" else text.split(",")


class Checksums(unittest.TestCase):
    def test_check_values(self) -> None:
        self.assertEqual(position(b"123456789"), 0xCBF43926)
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(mix(1), 0x514E28B7)

    def test_buckets(self) -> None:
        rows = json.loads(BUCKETS.read_text())
        self.assertGreater(len(rows), 20)
        for row in rows:
            self.assertEqual(position(row["key"]), row["hash"], row)
            self.assertEqual(bucket(row["hash"], row["seed"]), row["bucket"], row)


class Rings(unittest.TestCase):
    def test_answers(self) -> None:
        self.assertGreaterEqual(len(RINGS), 16)
        for path in RINGS:
            with self.subTest(path.stem):
                snapshot = Snapshot(path.read_bytes())
                self.assertEqual(snapshot.is_recipe, path.stem.endswith("-recipe"))
                self.check(snapshot, path.with_name(path.stem.removesuffix("-recipe") + ".txt").read_text())

    def check(self, snapshot: Snapshot, text: str) -> None:
        backends = iter(snapshot.backends)
        ring, questions = snapshot.ring(), 0
        for kind, *fields in map(str.split, text.splitlines()):
            if kind == "digest" and not snapshot.is_recipe:
                self.assertEqual(snapshot.digest, fields[0])
            elif kind == "points":
                self.assertEqual(len(snapshot), int(fields[0]))
            elif kind == "backend":
                identity, weight, zone = next(backends)
                self.assertEqual([identity, str(weight), zone or "-"], fields)
            elif kind == "features":
                self.assertEqual(list(snapshot.features), words(fields[0]))
            elif kind == "view":
                ring = snapshot.ring(words(fields[0]))
                self.assertEqual(len(ring), int(fields[1]))
            elif kind == "owners":
                at, *want = map(int, fields)
                self.assertEqual([owner for owner, _ in zip(ring.successors(at), range(4))], want, f"position {at}")
                self.assertEqual(ring.owner(at), want[0] if want else None)
                questions += 1
        self.assertIsNone(next(backends, None))
        self.assertGreater(questions, 20)

    def test_owners_skip(self) -> None:
        snapshot = Snapshot((TESTDATA / "rings" / "fleet.snap").read_bytes())
        four = [backend.identity for backend in snapshot.owners("key", 4)]
        self.assertEqual(len(set(four)), 4)
        rest = snapshot.owners("key", 2, skip={four[0], four[2]})
        self.assertEqual([backend.identity for backend in rest], [four[1], four[3]])
        self.assertEqual(snapshot.owners("key", 0), [])
        self.assertEqual(snapshot.owner("key"), snapshot.owners("key", 1)[0])
        self.assertEqual(len(snapshot.owners("key", 10_000)), 300)

    def test_unknown_feature(self) -> None:
        snapshot = Snapshot((TESTDATA / "rings" / "fleet.snap").read_bytes())
        with self.assertRaises(UnknownFeatureError):
            snapshot.owner("key", ["a", "tape"])
        self.assertIsNone(snapshot.owner("key", ["c"]), "nobody has c")

    def test_recipe_limit(self) -> None:
        data = (TESTDATA / "rings" / "fleet-recipe.snap").read_bytes()
        points = len(Snapshot(data))
        Snapshot(data, max_recipe_points=points)
        with self.assertRaises(FormatError):
            Snapshot(data, max_recipe_points=points - 1)


class Corruption(unittest.TestCase):
    def test_same_verdicts_as_go(self) -> None:
        mutated = 0
        for line in (TESTDATA / "corruption.txt").read_text().splitlines():
            kind, name, *fields = line.split()
            with self.subTest(f"{kind} {name} {fields[0]}"):
                if kind == "mutate":
                    good = (TESTDATA / "rings" / f"{name}.snap").read_bytes()
                    sums = [summary(data) for data in MUTATIONS[fields[0]](good)]
                    self.assertEqual(verdicts(sums), fields[1:])
                    mutated += len(sums)
                else:
                    found = summary(bytes.fromhex(fields[1].strip("-")))
                    self.assertEqual("refused" if found is None else f"{found:08x}", fields[0])
        self.assertGreater(mutated, 10_000)


class Vectors(unittest.TestCase):
    """What NGINX, pingora and this project's Go code own, by the points that this reader placed."""

    CONNECTS = {"localhost": "127.0.0.1", "mixedcase.test": "127.0.0.23", "MixedCase.test": "127.0.0.23"}

    def test_owners(self) -> None:
        files = sorted(VECTORS.glob("[npr]*/*.txt"))
        self.assertEqual(len(files), 15)
        for path in files:
            with self.subTest(path.stem):
                snapshot = Snapshot((TESTDATA / "vectors" / f"{path.parent.name}-{path.stem}.snap").read_bytes())
                ring, keys = snapshot.ring(), 0
                for kind, *fields in map(str.split, path.read_text().splitlines()):
                    if kind == "recipe":
                        self.assertEqual(snapshot.digest, fields[1])
                    elif kind == "view":
                        ring = snapshot.ring(words(fields[0]))
                    elif kind == "key":
                        keys += 1
                        if path.parent.name == "ringwright":
                            at, want = int(fields[0], 16), fields[2:]
                        else:
                            at, want = position(bytes.fromhex(fields[0].strip("-"))), fields[1:]
                        found = [snapshot.backends[i].identity for i, _ in zip(ring.successors(at), want)]
                        if path.parent.name == "nginx":
                            found = [self.connects(identity) for identity in found]
                        self.assertEqual(found, want, fields[0])
                self.assertGreaterEqual(keys, 30)

    def connects(self, identity: str) -> str:
        host, colon, port = identity.rpartition(":")
        if not colon or identity.endswith("]"):
            host, port = identity, "80"
        return f"{self.CONNECTS.get(host, host)}:{port}"


if __name__ == "__main__":
    unittest.main()
