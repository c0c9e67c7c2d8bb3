# SPDX-License-Identifier: Apache-2.0
"""routing.json, and the directory that it lies in."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from support import READERS, TESTDATA

from ringwright import Directory, LoadError, RoutingError, Snapshot, StaleError, State, UnknownFeatureError, bucket, position
from ringwright.routing import MAX_BYTES, Split, parse

FLEET = (TESTDATA / "rings" / "fleet.snap").read_bytes()
NAMES = (TESTDATA / "rings" / "v3.snap").read_bytes()


def routing(generation: int = 1, epoch: int = 0, stable: bytes = FLEET, more: str = "", chunks: str = "") -> bytes:
    snapshot = Snapshot(stable)
    text = (
        f'{{"apiVersion":"ringwright.dev/v1alpha1","ring":"cdn/edge","generation":{generation},"leaderEpoch":{epoch},'
        f'"stable":{{"slot":"a","digest":"{snapshot.digest}","version":"V{snapshot.algorithm}","revision":6{chunks}}}{more}}}'
    )
    return text.encode()


class Routing(unittest.TestCase):
    def test_same_verdicts_as_go(self) -> None:
        good = (TESTDATA / "routing.json").read_text()
        rows = (TESTDATA / "routing.txt").read_text().splitlines()
        self.assertGreater(len(rows), 60)
        for row in rows:
            verdict, name, old, new = row.split("\t")
            with self.subTest(name):
                data = good.replace(old, new.replace("\\n", "\n"), 1).encode()
                if verdict == "accepted":
                    parse(data)
                else:
                    self.assertRaises(RoutingError, parse, data)

    def test_bytes(self) -> None:
        good = (TESTDATA / "routing.json").read_bytes()
        parse(good + b"\n\t\r ")
        parse(good + b" " * (MAX_BYTES - len(good)))
        for bad in (good + b" " * (MAX_BYTES + 1 - len(good)), good.replace(b"cache", b"c\xff"), b"\xef\xbb\xbf" + good, b"[" * 100_000, b"[]", b"NaN"):
            self.assertRaises(RoutingError, parse, bad)

    def test_errors_name_the_field(self) -> None:
        with self.assertRaises(RoutingError) as raised:
            parse(routing(chunks=',"chunks":1'))
        self.assertEqual(raised.exception.field, "stable.chunks")

    def test_split(self) -> None:
        split = Split(1, {"*": 7, "lab01": 8})
        self.assertEqual([split.at(name) for name in ("lab01", "lab02", "", "*")], [8, 7, 7, 7])
        self.assertEqual(Split(1, {"lab01": 8}).at("lab02"), 0)


class Decisions(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = pathlib.Path(temporary.name)

    def write(self, **files: bytes) -> None:
        names = {"routing": "routing.json", "a": "ring-a.snap", "a1": "ring-a.snap.1", "b": "ring-b.snap"}
        for name, content in files.items():
            (self.path / names[name]).write_bytes(content)

    def load(self, datacenter: str = "", previous: State | None = None) -> State:
        return Directory(self.path, datacenter=datacenter).load(previous)

    def test_owner_and_failover(self) -> None:
        snapshot = Snapshot(FLEET)
        first, second = snapshot.owners("key", 2)
        self.write(a=FLEET, routing=routing(more=f',"addresses":{{"{second.identity}":"192.0.2.1:1"}}'))
        decision = self.load().decide("key")[0]
        self.assertEqual((decision.identity, decision.address, decision.failover), (first.identity, first.identity, False))
        self.assertEqual((decision.role, decision.revision, decision.digest), ("stable", 6, snapshot.digest))

        self.write(routing=routing(2, more=f',"addresses":{{"{second.identity}":"192.0.2.1:1"}},"down":["{first.identity}"]'))
        decision = self.load().decide("key")[0]
        self.assertEqual((decision.identity, decision.address, decision.failover), (second.identity, "192.0.2.1:1", True))

    def test_all_down_is_nobody_down(self) -> None:
        down = ",".join(sorted(f'"{backend.identity}"' for backend in Snapshot(FLEET).backends))
        self.write(a=FLEET, routing=routing(more=f',"down":[{down}]'))
        decisions = self.load().decide("key", n=2)
        self.assertEqual([d.identity for d in decisions], [b.identity for b in Snapshot(FLEET).owners("key", 2)])
        self.assertFalse(decisions[0].failover)

    def test_split(self) -> None:
        candidate = Snapshot(NAMES)
        more = f',"candidate":{{"slot":"b","digest":"{candidate.digest}","version":"V3"}},"split":{{"seed":7,"basisPoints":{{"lab01":5000}}}}'
        self.write(a=FLEET, b=NAMES, routing=routing(more=more))
        roles = set()
        for i in range(50):
            decision = self.load("lab01").decide(f"key-{i}")[0]
            self.assertEqual(decision.role == "candidate", bucket(position(f"key-{i}"), 7) < 5000)
            self.assertEqual(self.load("lab02").decide(f"key-{i}")[0].role, "stable")
            roles.add((decision.role, decision.address != ""))
        self.assertEqual(roles, {("stable", True), ("candidate", False)}, "a name without an address cannot be dialled")
        state = self.load("lab01")
        self.assertEqual({state.decide(f"key-{i}", ["a"])[0].role for i in range(50)}, {"stable"}, "the candidate does not know a")
        self.assertRaises(UnknownFeatureError, lambda: [state.decide(f"key-{i}", ["gpu"]) for i in range(50)])
        self.assertRaises(ValueError, state.decide, "key", (), 0)

    def test_keeps_and_fences(self) -> None:
        self.assertRaises(LoadError, self.load)
        self.write(a=FLEET, routing=routing(5, 2))
        state = self.load()
        self.assertIs(self.load(previous=state), state)
        for generation, epoch in ((4, 2), (9, 1)):
            self.write(routing=routing(generation, epoch))
            self.assertRaises(StaleError, self.load, "", state)
        self.write(routing=routing(1, 3))
        newer = self.load(previous=state)
        self.assertEqual((newer.leader_epoch, newer.generation), (3, 1))
        self.assertIs(newer.stable.snapshot, state.stable.snapshot, "an equal ring is not opened again")

    def test_half_written(self) -> None:
        cut = len(FLEET) // 3
        chunked = routing(chunks=',"chunks":2')
        self.write(a=FLEET[:cut], routing=chunked)
        for part in (None, b"", FLEET[cut:-1]):
            if part is not None:
                self.write(a1=part)
            self.assertRaises(LoadError, self.load)
        self.write(a1=FLEET[cut:])
        self.assertEqual(self.load().stable.snapshot.digest, Snapshot(FLEET).digest)
        self.write(routing=chunked.replace(b'"V2"', b'"V1"'))
        self.assertRaises(LoadError, self.load)

    def test_limits(self) -> None:
        self.write(a=FLEET, routing=routing())
        Directory(self.path, max_snapshot_bytes=len(FLEET)).load()
        self.assertRaises(LoadError, Directory(self.path, max_snapshot_bytes=len(FLEET) - 1).load)
        os.remove(self.path / "ring-a.snap")
        os.mkfifo(self.path / "ring-a.snap")
        self.assertRaises(LoadError, self.load)

    def test_lookup(self) -> None:
        self.write(a=FLEET, routing=routing())
        owner = Snapshot(FLEET).owner("key", ["a"])
        assert owner is not None
        ran = self.run_lookup(str(self.path), "key", "--features", "a")
        self.assertEqual(ran.stdout, f"key\t{owner.identity}\t{owner.identity}\t{owner.zone}\tstable\n")
        ran = self.run_lookup(str(self.path), "key", "--features", "c")
        self.assertEqual((ran.returncode, ran.stderr), (1, "error: key: no backend takes it\n"))
        ran = self.run_lookup(str(self.path / "none"), "key")
        self.assertEqual((ran.returncode, ran.stderr), (1, "error: routing.json: it is missing\n"))

    def run_lookup(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ringwright", "lookup", *arguments]
        return subprocess.run(command, cwd=READERS / "python", capture_output=True, text=True, check=False)


if __name__ == "__main__":
    unittest.main()
