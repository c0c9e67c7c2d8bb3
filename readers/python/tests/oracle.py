# SPDX-License-Identifier: Apache-2.0
"""Answers questions of the tests in readers, which compare all readers: oracle.py open|decide|follow FILE."""

from __future__ import annotations

import pathlib
import struct
import sys
from typing import Iterator, Optional

from support import summary

from ringwright import Directory, LoadError, StaleError, State, UnknownFeatureError


def open_all(content: bytes) -> Iterator[str]:
    """For each snapshot, in front of which stands its length in four bytes, say its summary or that it is refused."""
    at = 0
    while at < len(content):
        end = at + 4 + struct.unpack_from("<I", content, at)[0]
        found = summary(content[at + 4 : end])
        yield "refused" if found is None else f"{found:08x}"
        at = end


def decide(content: str) -> Iterator[str]:
    """For each line of directory, datacenter, features, count and key in hex, say the decisions."""
    place: tuple[str, str] = ("", "")
    state: Optional[State] = None
    for line in content.splitlines():
        directory, datacenter, features, count, key = line.split("\t")
        if place != (directory, datacenter):
            place = (directory, datacenter)
            try:
                state = Directory(directory, datacenter=datacenter.strip("-")).load()
            except LoadError:
                state = None
        if state is None:
            yield "not loaded"
            continue
        wanted = [feature for feature in features.split(",") if feature != "-"]
        try:
            decisions = state.decide(bytes.fromhex(key.strip("-")), wanted, int(count))
        except UnknownFeatureError:
            yield "unknown feature"
            continue
        texts = []
        for *fields, failover in decisions:
            texts.append("|".join(map(str, fields)) + ("|true " if failover else "|false "))
        yield "".join(texts) or "nobody"


def follow(content: str) -> Iterator[str]:
    """Load each directory on top of what the ones before left, and say what is loaded then."""
    state: Optional[State] = None
    for line in content.splitlines():
        try:
            state, outcome = Directory(line).load(state), "loaded"
        except StaleError:
            outcome = "stale"
        except LoadError:
            outcome = "refused"
        yield f"{outcome} {state.uid} {state.leader_epoch} {state.generation}" if state else f"{outcome} none"


def main() -> None:
    """Run one command on a file."""
    command, path = sys.argv[1:]
    content = pathlib.Path(path).read_bytes()
    lines = {"open": lambda: open_all(content), "decide": lambda: decide(content.decode()), "follow": lambda: follow(content.decode())}
    for line in lines[command]():
        print(line)


main()
