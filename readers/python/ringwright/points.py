# SPDX-License-Identifier: Apache-2.0
"""The points of a ring: read from section 4, or placed and proved by section 5."""

from __future__ import annotations

import hashlib
import struct
import zlib
from array import array
from bisect import bisect_left
from typing import Iterator, NamedTuple

from .checksum import mix
from .errors import FormatError
from .layout import V3, Header, Section
from .tables import Backends

_FIXED_POINT = 0x6DD90A9D  # From here a chain repeats its first point for ever.
_OVERFLOW = 1 << 31
_PROBES = 4096
_PROBE_STEP = 0x9E3779B1
_LE32 = struct.Struct("<I")


class Points(NamedTuple):
    """All points in ring order: their hashes, and the numbers of their backends."""

    hashes: array
    owners: array

    def first_from(self, position: int) -> int:
        """Return the number of the point that owns a position. There has to be a point."""
        i = bisect_left(self.hashes, position)
        return i if i < len(self.hashes) else 0


def chain_starts(header: Header, backends: Backends) -> list[int]:
    """Return the checksum that starts the chain of each backend."""
    starts = [zlib.crc32(p) for p in backends.hash_inputs]
    if header.algorithm != V3:
        return starts
    taken = {_FIXED_POINT}
    for number, start in enumerate(starts):
        salt = 0
        while start in taken:
            salt += 1
            start = zlib.crc32(b"\0\0" + _LE32.pack(salt), starts[number])
        starts[number] = start
        taken.add(start)
    return starts


def counts(header: Header, backends: Backends, starts: list[int]) -> list[int]:
    """Return how many points each backend has by its weight."""
    totals = []
    for backend, start in zip(backends.list, starts):
        points = backend.weight * header.points_per_weight
        if header.algorithm == V3 and points:
            points = max(4, (points + header.weight_unit // 2) // header.weight_unit)
        elif points and start == _FIXED_POINT:
            points = 1
        totals.append(points)
    return totals


def read(section: Section, header: Header, starts: list[int], totals: list[int]) -> Points:
    """Return the points of section 4."""
    data, total = section.data, header.points
    bucket_bits, owner_bits, entries_at = _geometry(section, header)
    hash_bits = 32 - bucket_bits
    width = hash_bits + owner_bits
    value_mask, owner_mask = (1 << width) - 1, (1 << owner_bits) - 1
    hashes, owners = array("I"), array("I")
    window = struct.Struct("<Q")
    bit = entries_at * 8
    for bucket, count in enumerate(_bucket_counts(section, header, bucket_bits)):
        high, last = bucket << hash_bits, None
        for _ in range(count):
            value = window.unpack_from(data, bit >> 3)[0] >> (bit & 7) & value_mask
            point, owner = high | value >> owner_bits, value & owner_mask
            if owner >= header.backends:
                raise section.fail("entry", bit >> 3, f"backend {owner} of {header.backends}")
            key = (point, mix(point ^ starts[owner])) if header.algorithm == V3 else value
            if last is not None and not last < key:
                raise section.fail("entry", bit >> 3, f"point {len(hashes)} does not ascend")
            hashes.append(point)
            owners.append(owner)
            last, bit = key, bit + width
    _check_end(section, bit, width, entries_at, total)
    for number, want in enumerate(totals):
        totals[number] = -want
    for owner in owners:
        totals[owner] += 1
    if any(totals):
        raise section.fail("points", 0, "a backend has not as many as its weight gives it")
    return Points(hashes, owners)


def _geometry(section: Section, header: Header) -> tuple[int, int, int]:
    """Check the sizes of section 4, and return `B`, `o` and where the entries start."""
    data, total = section.data, header.points
    if len(data) < 16:
        raise section.fail("points", 0, "the section is too short")
    bucket_bits, owner_bits, zero, rows, entry_bytes = struct.unpack_from("<BBHIQ", data)
    want_bits = max(4, (-(-total // 4) - 1).bit_length()) if total else 4
    want_owner_bits = (header.backends - 1).bit_length() if header.backends else 0
    if bucket_bits != want_bits or owner_bits != want_owner_bits or zero:
        raise section.fail("bits", 0, f"{bucket_bits}, {owner_bits}, want {want_bits}, {want_owner_bits}, 0")
    width = 32 - bucket_bits + owner_bits
    if entry_bytes != (-(-(total + 1) * width // 8) if total else 0) + 32:
        raise section.fail("bytes of the entries", 8, f"{entry_bytes} for {total} points")
    entries_at = 16 + (1 << bucket_bits) // 16 * 12 + rows * 64
    if len(data) != entries_at + entry_bytes:
        raise section.fail("points", 4, f"{rows} overflow rows make another length than {len(data)}")
    return bucket_bits, owner_bits, entries_at


def _bucket_counts(section: Section, header: Header, bucket_bits: int) -> Iterator[int]:
    """Yield the number of entries of each bucket, and check that the directory accounts for all of them."""
    data = section.data
    groups = (1 << bucket_bits) // 16
    rows_at = 16 + groups * 12
    rows = _LE32.unpack_from(data, 4)[0]
    used, done = 0, 0
    for at in range(16, rows_at, 12):
        start, value = struct.unpack_from("<IQ", data, at)
        if start & ~_OVERFLOW != done:
            raise section.fail("directory", at, f"a group starts at {start & ~_OVERFLOW}, want {done}")
        if start & _OVERFLOW:
            if value != used or used >= rows:
                raise section.fail("directory", at + 4, f"overflow row {value}, want {used} of {rows}")
            ends = struct.unpack_from("<16I", data, rows_at + used * 64)
            in_group = [end - begin for begin, end in zip((done, *ends), ends)]
            used += 1
            if min(in_group) < 0 or max(in_group) <= 15:
                raise section.fail("overflow row", rows_at + used * 64 - 64, "ends descend, or it is not needed")
        else:
            in_group = [value >> shift & 15 for shift in range(0, 64, 4)]
        done += sum(in_group)
        if done > header.points:
            raise section.fail("directory", at, f"{done} entries of {header.points}")
        yield from in_group
    if done != header.points or used != rows:
        raise section.fail("directory", 16, f"{done} entries of {header.points}, {used} rows of {rows}")


def _check_end(section: Section, bit: int, width: int, entries_at: int, total: int) -> None:
    """Check that the first entry stands behind the last, and nothing behind that."""
    data = section.data
    if total:
        mask = (1 << width) - 1
        first = int.from_bytes(data[entries_at : entries_at + 8], "little") & mask
        again = int.from_bytes(data[bit >> 3 : (bit >> 3) + 8], "little") >> (bit & 7) & mask
        if first != again:
            raise section.fail("entry", bit >> 3, "the entry behind the last is not the first")
        bit += width
    if int.from_bytes(data[bit >> 3 :], "little") >> (bit & 7):
        raise section.fail("entries", bit >> 3, "a bit behind the last is not 0")


def place(section: Section, header: Header, starts: list[int], totals: list[int]) -> Points:
    """Build the points of a recipe, and check that they are those of section 5."""
    if len(section.data) != 32:
        raise section.fail("fingerprint", 0, f"{len(section.data)} bytes, want 32")
    ranked = header.algorithm == V3
    placed: list[int] = []  # hash, rank and backend in one number, which sorts as the three do and takes less memory
    for number, (start, count) in enumerate(zip(starts, totals)):
        point = 0
        for _ in range(count):
            point = zlib.crc32(_LE32.pack(point), start)
            rank = mix(point ^ start) if ranked else 0
            placed.append(point << 64 | rank << 32 | number)
    placed.sort()
    points = Points(array("I", (p >> 64 for p in placed)), array("I", (p & 0xFFFFFFFF for p in placed)))
    if _fingerprint(points) != bytes(section.data):
        raise section.fail("fingerprint", 0, "the points that were placed have another one")
    return points


def _fingerprint(points: Points) -> bytes:
    digest = hashlib.sha256()
    if points.hashes:
        for j in range(_PROBES):
            i = points.first_from(j * _PROBE_STEP & 0xFFFFFFFF)
            digest.update(struct.pack("<II", i, points.owners[i]))
    return digest.digest()


def check_total(header: Header, totals: list[int], offset: int) -> None:
    """Check that the weights give as many points as the header says."""
    if sum(totals) != header.points:
        raise FormatError("number of points", offset, f"{header.points}, the weights give {sum(totals)}")
