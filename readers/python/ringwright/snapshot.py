# SPDX-License-Identifier: Apache-2.0
"""A snapshot, decoded and checked in full, and the rings of features in it."""

from __future__ import annotations

import hashlib
import zlib
from array import array
from typing import Collection, Iterable, Iterator, Optional, Union

from . import layout, points, tables
from .errors import FormatError, UnknownFeatureError
from .layout import Header
from .points import Points
from .tables import Backend

Key = Union[bytes, str]

MAX_RECIPE_POINTS = 1 << 22


def position(key: Key) -> int:
    """Return the position of a key on the ring. Text counts as its UTF-8 bytes."""
    return zlib.crc32(key.encode() if isinstance(key, str) else key)


class Snapshot:
    """One consistent-hash ring, as a snapshot file holds it. It never changes.

    `backends` are in ring order; everything that names a backend by number is an index of it.
    """

    def __init__(self, data: bytes, *, max_recipe_points: int = MAX_RECIPE_POINTS) -> None:
        """Decode a snapshot. It raises FormatError where the file breaks a rule of the format.

        A file without points, a recipe, is refused if it has more than max_recipe_points: they take memory and time
        that a small file can ask for.
        """
        header, sections = layout.read(memoryview(data))
        backends = tables.read_backends(sections[layout.BACKENDS], header)
        self.digest = "sha256:" + hashlib.sha256(data).hexdigest()
        self.algorithm = header.algorithm
        self.identity = header.identity
        self.points_per_weight = header.points_per_weight
        self.weight_unit = header.weight_unit
        self.backends: list[Backend] = backends.list
        self._features: dict[str, bytes] = {}
        if layout.FEATURES in sections:
            self._features = tables.read_features(sections[layout.FEATURES], header)
        self.features: tuple[str, ...] = tuple(self._features)
        self.is_recipe = layout.FINGERPRINT in sections
        views = {0: array("I")}
        if layout.VIEWS in sections:
            views = tables.read_views(sections[layout.VIEWS], header, len(self.features))

        starts = points.chain_starts(header, backends)
        self._totals = points.counts(header, backends, starts)
        points.check_total(header, self._totals, 32)
        self._points = _read_points(sections, header, starts, self._totals, max_recipe_points)
        if layout.VIEWS in sections:
            members = {wanted: self._members(wanted) for wanted in views}
            tables.check_trims(sections[layout.VIEWS], members, views, self._points.owners, self._totals)
        self._views = {wanted: frozenset(trims) for wanted, trims in views.items()}
        self._rings: dict[int, Ring] = {}

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self._points.hashes)

    def ring(self, features: Iterable[str] = ()) -> Ring:
        """Return the ring of the backends that have all of these features; it raises UnknownFeatureError."""
        wanted = 0
        for feature in features:
            if feature not in self._features:
                raise UnknownFeatureError(feature)
            wanted |= 1 << self.features.index(feature)
        if wanted not in self._rings:
            members = self._members(wanted)
            live = sum(1 for member, total in zip(members, self._totals) if member and total)
            ring = Ring(self._points, members, live, self._views.get(wanted, frozenset()))
            if wanted not in self._views:
                return ring  # There are 2^64 sets that a file does not declare.
            self._rings[wanted] = ring
        return self._rings[wanted]

    def owner(self, key: Key, features: Iterable[str] = ()) -> Optional[Backend]:
        """Return the backend that a key belongs to, None where no backend with the features takes keys."""
        number = self.ring(features).owner(position(key))
        return None if number is None else self.backends[number]

    def owners(self, key: Key, n: int, features: Iterable[str] = (), skip: Collection[str] = ()) -> list[Backend]:
        """Return the owner of a key and those that follow, n distinct backends or all that there are, without the identities in skip."""
        found: list[Backend] = []
        for number in self.ring(features).successors(position(key)) if n > 0 else ():
            if self.backends[number].identity not in skip:
                found.append(self.backends[number])
                if len(found) == n:
                    break
        return found

    def _members(self, wanted: int) -> bytearray:
        """Return a 1 for each backend that has all features of a set."""
        members = bytearray(b"\1" * len(self.backends))
        for number, bits in enumerate(self._features.values()):
            if wanted >> number & 1:
                for i in range(len(members)):
                    members[i] &= bits[i >> 3] >> (i & 7)
        return members


def _read_points(sections: dict[int, layout.Section], header: Header, starts: list[int], totals: list[int], most: int) -> Points:
    if layout.POINTS in sections:
        return points.read(sections[layout.POINTS], header, starts, list(totals))
    if header.points > most:
        raise FormatError("number of points", 32, f"{header.points}, at most {most} are built from a recipe")
    return points.place(sections[layout.FINGERPRINT], header, starts, totals)


class Ring:
    """The ring of those backends of a snapshot that have a set of features. Positions are numbers from 0 to 2^32 - 1."""

    def __init__(self, all_points: Points, members: bytearray, live: int, trims: frozenset[int]) -> None:
        self._points = all_points
        self._members = members
        self._live = live
        self._trims = trims

    def __len__(self) -> int:
        """Return the number of backends that own keys."""
        return self._live

    def owner(self, position: int) -> Optional[int]:
        """Return the number of the backend that owns a position, None where no backend owns any."""
        return next(self._walk(position), None)

    def successors(self, position: int) -> Iterator[int]:
        """Yield the numbers of all backends that own keys: the owner of a position, and then as they follow, each once."""
        seen: set[int] = set()
        for owner in self._walk(position):
            if owner not in seen:
                seen.add(owner)
                yield owner
                if len(seen) == self._live:
                    return

    def _walk(self, position: int) -> Iterator[int]:
        if self._live == 0:
            return
        owners, members, trims = self._points.owners, self._members, self._trims
        total = len(owners)
        first = self._points.first_from(position)
        for i in range(first, first + total):
            point = i if i < total else i - total
            if members[owners[point]] and point not in trims:
                yield owners[point]
