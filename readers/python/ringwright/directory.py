# SPDX-License-Identifier: Apache-2.0
"""The directory into which the ConfigMaps of a ring are mounted."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Optional

from . import routing
from .errors import FormatError, LoadError, RoutingError, StaleError
from .layout import MARKER
from .routing import MAX_BYTES, MAX_CHUNKS, Reference, Routing
from .snapshot import MAX_RECIPE_POINTS, Snapshot
from .state import LoadedRing, State

MAX_SNAPSHOT_BYTES = 512 << 20

_DATA_LINK = "..data"
_ROUTING_FILE = "routing.json"
_ROUTING_FOLDER = "routing"
_TRIES = 4


class Directory:
    """Reads the files of a ring: all in one folder, or each ConfigMap in one of its own below it."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        datacenter: str = "",
        max_snapshot_bytes: int = MAX_SNAPSHOT_BYTES,
        max_recipe_points: int = MAX_RECIPE_POINTS,
    ) -> None:
        """Name the directory, which need not be there yet, and the datacenter that this reader runs in."""
        self.path = os.fspath(path)
        self._datacenter = datacenter
        self._max_snapshot_bytes = max_snapshot_bytes
        self._max_recipe_points = max_recipe_points

    def load(self, previous: Optional[State] = None) -> State:
        """Return what the directory holds, the previous state itself where nothing changed.

        It raises LoadError where there is nothing that can be switched to, and then the previous state stays good:
        files are missing or of different moments, one is corrupt, or the directory went back (StaleError).
        """
        for _ in range(_TRIES - 1):
            moment = _Moment(self.path)
            try:
                return self._load(moment, previous)
            except LoadError:
                if moment.folders == _Moment(self.path).folders:
                    raise
        return self._load(_Moment(self.path), previous)

    def _load(self, moment: _Moment, previous: Optional[State]) -> State:
        data = moment.read(_ROUTING_FOLDER, _ROUTING_FILE, MAX_BYTES)
        source = hashlib.sha256(data).digest()
        if previous is not None and previous.source == source:
            return previous
        try:
            content = routing.parse(data)
        except RoutingError as error:
            raise LoadError(str(error)) from error
        _check_succession(content, previous)
        stable = self._ring(moment, content.stable, content, previous)
        candidate = self._ring(moment, content.candidate, content, previous) if content.candidate else None
        return State(content, source, stable, candidate, self._datacenter)

    def _ring(self, moment: _Moment, reference: Reference, content: Routing, previous: Optional[State]) -> LoadedRing:
        for loaded in previous.rings() if previous is not None else ():
            if (loaded.reference.digest, loaded.reference.version) == (reference.digest, reference.version):
                return LoadedRing(loaded.snapshot, reference, content.down)
        return LoadedRing(self._open(moment, reference), reference, content.down)

    def _open(self, moment: _Moment, reference: Reference) -> Snapshot:
        parts: list[bytes] = []
        left = self._max_snapshot_bytes
        name = ""
        for folder, name in reference.files():
            parts.append(moment.read(folder, name, left))
            if not parts[-1]:
                raise LoadError(f"{name}: it is empty, so of another moment than {_ROUTING_FILE}")
            left -= len(parts[-1])
        data = b"".join(parts)
        first = reference.files()[0][1]
        if data == MARKER:
            raise LoadError(f"{first}: the slot is empty, {_ROUTING_FILE} names {reference.digest}")
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        if digest != reference.digest:
            raise LoadError(f"{first} to {name}: the digest is {digest}, {_ROUTING_FILE} names {reference.digest}")
        try:
            snapshot = Snapshot(data, max_recipe_points=self._max_recipe_points)
        except FormatError as error:
            raise LoadError(f"{first}: {error}") from error
        if f"V{snapshot.algorithm}" != reference.version:
            raise LoadError(f"{first}: the algorithm is V{snapshot.algorithm}, {_ROUTING_FILE} says {reference.version}")
        return snapshot


def _check_succession(content: Routing, previous: Optional[State]) -> None:
    """Refuse what is of another ring, or was written before what is loaded."""
    if previous is None:
        return
    if content.ring != previous.ring:
        raise LoadError(f"{_ROUTING_FILE}: it is of ring {content.ring}, the loaded one is {previous.ring}")
    found = (content.leader_epoch, content.generation)
    loaded = (previous.leader_epoch, previous.generation)
    if content.uid == previous.uid and found < loaded:
        raise StaleError(f"{_ROUTING_FILE}: (leaderEpoch, generation) is {found}, the loaded one is {loaded}")


class _Moment:
    """Where the files lie between two swaps of a volume: each `..data` link is followed once."""

    def __init__(self, path: str) -> None:
        self.root = _follow(path)
        names = [_ROUTING_FOLDER]
        for slot in "ab":
            names += [slot] + [f"{slot}-{i}" for i in range(1, MAX_CHUNKS)]
        self.folders = {name: _follow(os.path.join(self.root, name)) for name in names}
        self.folders[""] = self.root

    def read(self, folder: str, name: str, limit: int) -> bytes:
        """Return a file of the directory, or where it has none, of a folder in it."""
        try:
            return _read(os.path.join(self.root, name), name, limit)
        except FileNotFoundError:
            pass
        try:
            return _read(os.path.join(self.folders[folder], name), name, limit)
        except FileNotFoundError:
            raise LoadError(f"{name}: it is missing") from None


def _follow(path: str) -> str:
    try:
        return os.path.join(path, os.readlink(os.path.join(path, _DATA_LINK)))
    except OSError:
        return path


def _read(path: str, name: str, limit: int) -> bytes:
    try:
        info = os.stat(path)
        if not stat.S_ISREG(info.st_mode):  # Opening a pipe would block for ever.
            raise LoadError(f"{name}: not a regular file")
        if info.st_size > limit:
            raise LoadError(f"{name}: {info.st_size} bytes, the limit is {limit}")
        with open(path, "rb") as file:
            data = file.read(info.st_size + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise LoadError(f"{name}: {error.strerror}") from error
    if len(data) > info.st_size:
        raise LoadError(f"{name}: it grew while it was read")
    return data
