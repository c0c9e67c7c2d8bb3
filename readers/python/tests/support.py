# SPDX-License-Identifier: Apache-2.0
"""What the tests share: summaries of snapshots, and the mutations that readers/testdata/README.md lists."""

from __future__ import annotations

import pathlib
import struct
import sys
import zlib
from typing import Iterator, Optional

READERS = pathlib.Path(__file__).resolve().parents[2]
TESTDATA = READERS / "testdata"
VECTORS = READERS.parent / "pkg" / "ring" / "testdata"
BUCKETS = READERS.parent / "pkg" / "routing" / "testdata" / "buckets.json"

sys.path.insert(0, str(READERS / "python"))

from ringwright import FormatError, Snapshot  # noqa: E402
from ringwright.checksum import crc32c  # noqa: E402

MAX_RECIPE_POINTS = 1 << 16
SET_VALUES = (0, 1, 2, 255, 256, 65_535, 65_537, 2**31 - 1, 2**31, 2**32 - 1)


def summary(data: bytes) -> Optional[int]:
    """Return the checksum of what a snapshot says, None where it is refused."""
    try:
        snapshot = Snapshot(data, max_recipe_points=MAX_RECIPE_POINTS)
    except FormatError:
        return None
    out = bytearray()
    for backend in snapshot.backends:
        out += backend.identity.encode() + b"\0" + struct.pack("<I", backend.weight) + backend.zone.encode() + b"\0"
    for features in [()] + [(f,) for f in snapshot.features] + [snapshot.features]:
        out += "".join(features).encode() + b"\0"
        ring = snapshot.ring(features)
        for j in range(64):
            for owner, _ in zip(ring.successors(j * 0x9E3779B1 & 0xFFFFFFFF), range(3)):
                out += struct.pack("<I", owner)
            out += b"\xff"
    return zlib.crc32(out)


def reseal(data: bytearray) -> bytes:
    """Give edited bytes the checksum that they should have."""
    if len(data) >= 4:
        data[-4:] = struct.pack("<I", crc32c(data[:-4]))
    return bytes(data)


def _truncate(good: bytes) -> Iterator[bytes]:
    return (good[:i] for i in range(len(good)))


def _truncate_resealed(good: bytes) -> Iterator[bytes]:
    for data in map(bytearray, _truncate(good)):
        if len(data) >= 72:
            data[40:48] = struct.pack("<Q", len(data))
        yield reseal(data)


def _flip(good: bytes) -> Iterator[bytes]:
    for i in range(8 * len(good)):
        data = bytearray(good)
        data[i // 8] ^= 1 << i % 8
        yield bytes(data)


def _flip_resealed(good: bytes) -> Iterator[bytes]:
    return (reseal(bytearray(data)) for data in _flip(good))


def _set_resealed(good: bytes) -> Iterator[bytes]:
    for at in range(0, len(good) - 4, 4):
        value = struct.unpack_from("<I", good, at)[0]
        for other in (*SET_VALUES, value + 1, value - 1):
            data = bytearray(good)
            data[at : at + 4] = struct.pack("<I", other & 0xFFFFFFFF)
            yield reseal(data)


MUTATIONS = {
    "truncate": _truncate,
    "truncate-resealed": _truncate_resealed,
    "flip": _flip,
    "flip-resealed": _flip_resealed,
    "set-resealed": _set_resealed,
}


def verdicts(sums: list[Optional[int]]) -> list[str]:
    """Return how many there are, which are accepted as ranges of numbers, and the CRC-32 of the summaries of those."""
    ranges, first = [], None
    for i, found in enumerate(sums + [None]):
        if found is not None and first is None:
            first = i
        elif found is None and first is not None:
            ranges.append(f"{first}-{i - 1}")
            first = None
    accepted = b"".join(struct.pack("<I", found) for found in sums if found is not None)
    return [str(len(sums)), ",".join(ranges) or "-", f"{zlib.crc32(accepted):08x}"]
