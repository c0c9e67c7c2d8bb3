# SPDX-License-Identifier: Apache-2.0
"""One verified set of files, and its answers."""

from __future__ import annotations

from typing import Iterable, NamedTuple, Optional, Sequence

from .errors import UnknownFeatureError
from .identity import NAME
from .routing import Reference, Routing
from .snapshot import Key, Snapshot, position
from .split import bucket

STABLE, CANDIDATE = "stable", "candidate"


class Decision(NamedTuple):
    """A backend that is to take a key, and the ring that said so.

    `address` is where to connect: what routing.json gives, else the identity where that is an address, else empty.
    `failover` says that the owner of the key was passed over, because it is down and others are not.
    """

    identity: str
    address: str
    zone: str
    weight: int
    role: str
    revision: int
    digest: str
    generation: int
    failover: bool


class LoadedRing:
    """A snapshot with what routing.json says of it."""

    def __init__(self, snapshot: Snapshot, reference: Reference, down: frozenset[str]) -> None:
        """Remember which backends are down. Those that are not on the ring have no effect."""
        self.snapshot = snapshot
        self.reference = reference
        self._down = frozenset(i for i, b in enumerate(snapshot.backends) if b.identity in down)

    def answers(self, features: Sequence[str]) -> bool:
        """Report whether the ring declares the features and has a backend for them, up or down."""
        try:
            return len(self.snapshot.ring(features)) > 0
        except UnknownFeatureError:
            return False

    def owners(self, at: int, features: Sequence[str], n: int) -> tuple[list[int], bool]:
        """Return the owner of a position and those that follow, and whether the owner was passed over.

        Those that are down are passed over, unless all are.
        """
        ring = self.snapshot.ring(features)
        first, found = None, []
        for owner in ring.successors(at):
            first = owner if first is None else first
            if owner not in self._down:
                found.append(owner)
                if len(found) == n:
                    break
        if found:
            return found, first != found[0]
        return [owner for owner, _ in zip(ring.successors(at), range(n))], False


class State:
    """What a directory held at one moment. It never changes, so any number of threads can ask it."""

    def __init__(self, content: Routing, source: bytes, stable: LoadedRing, candidate: Optional[LoadedRing], datacenter: str) -> None:
        """Put together what was loaded. `source` is the SHA-256 of routing.json."""
        self.ring = content.ring
        self.uid = content.uid
        self.generation = content.generation
        self.leader_epoch = content.leader_epoch
        self.source = source
        self.stable = stable
        self.candidate = candidate
        self.seed = content.split.seed if content.split else 0
        self.basis_points = content.split.at(datacenter) if content.split else 0
        self._addresses = content.addresses

    def rings(self) -> list[LoadedRing]:
        """Return the stable ring, and the candidate where there is one."""
        return [self.stable] + ([self.candidate] if self.candidate else [])

    def decide(self, key: Key, features: Iterable[str] = (), n: int = 1) -> list[Decision]:
        """Return the backends for a key: the owner, then those that follow, n distinct ones or all that there are.

        The list is empty where no backend has the features and a weight. It raises UnknownFeatureError where the ring
        that answers does not declare one of them.
        """
        if n < 1:
            raise ValueError(f"n is {n}, not at least 1")
        wanted = list(features)
        at = position(key)
        loaded, role = self.stable, STABLE
        if self.candidate and bucket(at, self.seed) < self.basis_points and self.candidate.answers(wanted):
            loaded, role = self.candidate, CANDIDATE
        owners, failover = loaded.owners(at, wanted, n)
        return [self._decision(loaded, role, owner, failover) for owner in owners]

    def _decision(self, loaded: LoadedRing, role: str, number: int, failover: bool) -> Decision:
        snapshot, reference = loaded.snapshot, loaded.reference
        identity, weight, zone = snapshot.backends[number]
        own = identity if snapshot.identity != NAME else ""
        address = self._addresses.get(identity, own)
        return Decision(identity, address, zone, weight, role, reference.revision, reference.digest, self.generation, failover)
