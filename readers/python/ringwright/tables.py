# SPDX-License-Identifier: Apache-2.0
"""Sections 1 to 3: backends, features, views."""

from __future__ import annotations

import struct
from array import array
from typing import NamedTuple

from . import identity
from .layout import MAX_FEATURES, MAX_WEIGHT, Header, Section


class Backend(NamedTuple):
    """One backend of a ring. A weight of 0 means that it is drained; `zone` is empty where it has none."""

    identity: str
    weight: int
    zone: str


class Backends(NamedTuple):
    """The backends in ring order, and what is hashed for each."""

    list: list[Backend]
    hash_inputs: list[bytes]


_CODES = {0: "", 1: "B", 2: "H", 4: "I"}


class _Columns:
    """Reads the columns of section 1 one behind the other."""

    def __init__(self, section: Section, at: int) -> None:
        self.section = section
        self.at = at

    def numbers(self, count: int, width: int) -> tuple[int, ...]:
        if width == 0:
            return (0,) * count
        return struct.unpack(f"<{count}{_CODES[width]}", self.take(count * width))

    def take(self, length: int) -> memoryview:
        data = self.section.data[self.at : self.at + length]
        if len(data) != length:
            raise self.section.fail("backends", self.at, "the section is too short")
        self.at += length
        return data

    def texts(self, field: str, ends: tuple[int, ...], length: int) -> list[bytes]:
        """Return the texts that end at ends; together they have length bytes, and none is empty."""
        start = self.at
        text = bytes(self.take(length))
        if (ends[-1] if ends else 0) != length:
            raise self.section.fail(field, start, f"{length} bytes, and the last one ends elsewhere")
        texts, last = [], 0
        for end in ends:
            if not last < end <= length:
                raise self.section.fail(field, start, "the ends do not ascend")
            texts.append(text[last:end])
            last = end
        return texts


def read_backends(section: Section, header: Header) -> Backends:
    """Return the backends of section 1."""
    if len(section.data) < 16:
        raise section.fail("backends", 0, "the section is too short")
    id_bytes, zones, zone_bytes, *widths = struct.unpack_from("<IIIBBBB", section.data)
    for at, width in enumerate(widths):
        if width not in ((1, 2, 4) if zones or at < 2 else (0,)):
            raise section.fail("width of a column", 12 + at, f"{width} is not allowed")
    columns = _Columns(section, 16)
    weights = columns.numbers(header.backends, widths[0])
    ids = columns.texts("identities", columns.numbers(header.backends, widths[1]), id_bytes)
    zone_numbers = columns.numbers(header.backends, widths[2])
    if zones > header.backends:
        raise section.fail("number of zones", 4, f"{zones} are more than there are backends")
    names = columns.texts("zones", columns.numbers(zones, widths[3]), zone_bytes)
    if columns.at != len(section.data):
        raise section.fail("backends", columns.at, "the section is too long")

    largest = (max(weights, default=0), id_bytes, zones, zone_bytes)
    for at, width in enumerate(widths):
        if width != _smallest_width(largest[at]) and width:
            raise section.fail("width of a column", 12 + at, f"{width} bytes are not the fewest for {largest[at]}")
    if largest[0] > MAX_WEIGHT:
        raise section.fail("weights", 16, f"{largest[0]} is above {MAX_WEIGHT}")
    if set(zone_numbers) - {0} != set(range(1, zones + 1)):
        raise section.fail("zone numbers", 16, "each zone is that of a backend, and no other is")
    if not all(map(identity.is_name, names)) or any(a >= b for a, b in zip(names, names[1:])):
        raise section.fail("zones", 16, "not ascending names")

    hash_inputs = _hash_inputs(section, header, ids)
    texts = [""] + [name.decode() for name in names]
    rows = zip(ids, weights, zone_numbers)
    return Backends([Backend(name.decode(), weight, texts[zone]) for name, weight, zone in rows], hash_inputs)


def _smallest_width(largest: int) -> int:
    return 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 4


def _hash_inputs(section: Section, header: Header, ids: list[bytes]) -> list[bytes]:
    parse = identity.parser(header.identity)
    hash_inputs, last = [], None
    for number, text in enumerate(ids):
        try:
            parsed = parse(text)
        except ValueError as error:
            raise section.fail("identities", 16, f"backend {number}: {text!r}: {error}") from None
        if last is not None and not last < parsed.order:
            raise section.fail("identities", 16, f"backend {number}: {text!r} is not in ring order")
        hash_inputs.append(parsed.hash_input)
        last = parsed.order
    return hash_inputs


def read_features(section: Section, header: Header) -> dict[str, bytes]:
    """Return the members of each feature of section 2 as a bit set, lowest bit of the first byte first."""
    data = section.data
    length = -(-header.backends // 8)
    unused = 0xFF << header.backends % 8 & 0xFF if header.backends % 8 else 0
    count = int.from_bytes(data[:4], "little")
    if len(data) < 4 or not 1 <= count <= MAX_FEATURES:
        raise section.fail("number of features", 0, f"{count} is not allowed")
    features: dict[str, bytes] = {}
    at, last = 4, b""
    for _ in range(count):
        size = data[at] if at < len(data) else 0
        end = at + 1 + size + length
        if end > len(data):
            raise section.fail("features", at, "the section is too short")
        name = bytes(data[at + 1 : at + 1 + size])
        members = bytes(data[at + 1 + size : end])
        if not identity.is_name(name) or name <= last:
            raise section.fail("features", at, f"{name!r} is not a name behind {last!r}")
        if members and members[-1] & unused:
            raise section.fail("features", end - 1, "a bit behind the last backend is not 0")
        features[name.decode()] = members
        at, last = end, name
    if at != len(data):
        raise section.fail("features", at, "the section is too long")
    return features


def read_views(section: Section, header: Header, features: int) -> dict[int, array]:
    """Return the trims of each declared view of section 3, ascending, by its set of features."""
    data = section.data
    count = int.from_bytes(data[:4], "little")
    if len(data) < 4 or not 1 <= count <= MAX_FEATURES + 1:
        raise section.fail("number of views", 0, f"{count} is not allowed")
    views: dict[int, array] = {}
    at, last = 4, -1
    for _ in range(count):
        if at + 16 > len(data):
            raise section.fail("views", at, "the section is too short")
        wanted, trims, length = struct.unpack_from("<QII", data, at)
        if (wanted != 0 if last < 0 else wanted <= last) or wanted >> features:
            raise section.fail("set of a view", at, f"{wanted:#x} is not allowed here")
        if at + 16 + length > len(data):
            raise section.fail("bytes of trims", at + 12, f"{length} are more than there are")
        try:
            views[wanted] = _read_trims(data[at + 16 : at + 16 + length], trims, header.points)
        except ValueError as error:
            raise section.fail("trims", at + 16, str(error)) from None
        at, last = at + 16 + length, wanted
    if at != len(data):
        raise section.fail("views", at, "the section is too long")
    return views


def _read_trims(data: memoryview, count: int, points: int) -> array:
    trims, at, next_free = array("I"), 0, 0
    for _ in range(count):
        distance, shift = 0, 0
        while True:
            if at == len(data) or shift > 28:
                raise ValueError("a number is cut off or too large")
            byte = data[at]
            distance |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        if byte == 0 and shift > 7:
            raise ValueError("a number has more bytes than it takes")
        if next_free + distance >= points:
            raise ValueError(f"{next_free + distance} is not the number of a point")
        trims.append(next_free + distance)
        next_free += distance + 1
    if at != len(data):
        raise ValueError("there are more bytes than numbers")
    return trims


def check_trims(section: Section, members: dict[int, bytearray], views: dict[int, array], owners: array, totals: list[int]) -> None:
    """Check that views leave out points of members only, at most a quarter of them, and never the last one of a backend."""
    for wanted, trims in views.items():
        left = list(totals)
        for point in trims:
            owner = owners[point]
            left[owner] -= 1
            if not members[wanted][owner] or left[owner] == 0:
                raise section.fail("trims", 0, f"view {wanted:#x} leaves out point {point} of backend {owner}")
        total = sum(n for n, member in zip(totals, members[wanted]) if member)
        if len(trims) * 4 > total:
            raise section.fail("trims", 0, f"view {wanted:#x} leaves out {len(trims)} of {total} points")


