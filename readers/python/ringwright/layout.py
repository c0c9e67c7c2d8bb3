# SPDX-License-Identifier: Apache-2.0
"""Header, section table and trailer: where everything stands, and that nothing else does."""

from __future__ import annotations

import struct
from typing import NamedTuple

from .checksum import crc32c
from .errors import FormatError
from .identity import ADDRESS, NAME, NGINX

MAGIC = b"\x89RWRING\n"
MARKER = b"\x89RWNONE\n"

V1, V2, V3 = 1, 2, 3
BACKENDS, FEATURES, VIEWS, POINTS, FINGERPRINT = 1, 2, 3, 4, 5

MAX_BACKENDS = 65_536
MAX_WEIGHT = 1_000_000
MAX_POINTS_PER_WEIGHT = 100_000
MAX_POINTS = 2**31 - 1
MAX_FEATURES = 64
MAX_SECTIONS = 64
_MILLION = 1_000_000

_HEADER = struct.Struct("<8sHHBBHIIIIIIQ16s")
_ROW = struct.Struct("<IIQQ")
_OPTIONAL = 1


class Header(NamedTuple):
    """The fields of the header that describe the ring."""

    algorithm: int
    identity: int
    points_per_weight: int
    weight_unit: int
    max_imbalance: int
    backends: int
    points: int
    sections: int


class Section(NamedTuple):
    """The content of a section and where it starts in the file."""

    offset: int
    data: memoryview

    def fail(self, field: str, at: int, reason: str) -> FormatError:
        """Return the error that a field at a place of this section is wrong."""
        return FormatError(field, self.offset + at, reason)


def read(data: memoryview) -> tuple[Header, dict[int, Section]]:
    """Check the file as a whole, and return its header and the sections of the kinds that are known."""
    if len(data) < 72 or data[:8] != MAGIC:
        raise FormatError("magic", 0, "not a snapshot")
    header = _read_header(data)
    return header, _read_sections(data, header)


def _read_header(data: memoryview) -> Header:
    fields = _HEADER.unpack_from(data)
    _, version, flags, algorithm, identity, zero, per_weight, unit, imbalance, backends, points, sections, length, zeros = fields
    if version != 1:
        raise FormatError("format version", 8, f"{version} is not known, only 1")
    if length != len(data) or length % 8:
        raise FormatError("length", 40, f"{length}, the file has {len(data)} bytes")
    trailer = len(data) - 8
    if crc32c(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise FormatError("checksum", trailer + 4, "is not that of the content")
    _check(flags == 0, "flags", 10, flags)
    _check(V1 <= algorithm <= V3, "algorithm", 12, algorithm)
    _check(identity in (ADDRESS, NGINX, NAME), "identity", 13, identity)
    _check(zero == 0, "reserved bytes", 14, zero)
    most = 160 if algorithm == V1 else MAX_POINTS_PER_WEIGHT
    least = 160 if algorithm == V1 else 1
    _check(least <= per_weight <= most, "points per weight", 16, per_weight)
    for name, at, value in (("weight unit", 20, unit), ("largest imbalance", 24, imbalance)):
        _check(1 <= value <= _MILLION if algorithm == V3 else value == 0, name, at, value)
    _check(backends <= MAX_BACKENDS, "number of backends", 28, backends)
    _check(points <= MAX_POINTS and (backends > 0 or points == 0), "number of points", 32, points)
    _check(1 <= sections <= MAX_SECTIONS, "number of sections", 36, sections)
    _check(not any(zeros), "reserved bytes", 48, zeros.hex())
    _check(not any(data[trailer : trailer + 4]), "trailer", trailer, "not 0")
    return Header(algorithm, identity, per_weight, unit, imbalance, backends, points, sections)


def _check(good: bool, field: str, offset: int, value: object) -> None:
    if not good:
        raise FormatError(field, offset, f"{value} is not allowed")


def _read_sections(data: memoryview, header: Header) -> dict[int, Section]:
    sections: dict[int, Section] = {}
    trailer = len(data) - 8
    end = _HEADER.size + header.sections * _ROW.size
    if end > trailer:
        raise FormatError("section table", _HEADER.size, "does not fit into the file")
    last = 0
    for at in range(_HEADER.size, end, _ROW.size):
        kind, flags, offset, length = _ROW.unpack_from(data, at)
        known = kind <= FINGERPRINT
        _check(kind > last, "section kind", at, kind)
        _check(flags == 0 if known else flags == _OPTIONAL, "section flags", at + 4, flags)
        start = _padded(data, end)
        _check(offset == start, "section offset", at + 8, offset)
        _check(length <= trailer - start, "section length", at + 16, length)
        last, end = kind, start + length
        if known:
            sections[kind] = Section(start, data[start:end])
    if _padded(data, end) != trailer:
        raise FormatError("section table", _HEADER.size, "the last section does not end at the trailer")
    _check_kinds(sections, header)
    return sections


def _padded(data: memoryview, end: int) -> int:
    """Return the next multiple of 8, up to which all bytes are 0."""
    start = -(-end // 8) * 8
    if any(data[end:start]):
        raise FormatError("padding", end, "is not 0")
    return start


def _check_kinds(sections: dict[int, Section], header: Header) -> None:
    table = _HEADER.size
    if BACKENDS not in sections:
        raise FormatError("section table", table, "there are no backends")
    if (VIEWS in sections) != (header.algorithm == V3):
        raise FormatError("section table", table, "views belong to V3 and to nothing else")
    if (POINTS in sections) == (FINGERPRINT in sections):
        raise FormatError("section table", table, "there is one of points and fingerprint")
