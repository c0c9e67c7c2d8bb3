# SPDX-License-Identifier: Apache-2.0
"""routing.json: which ring answers which keys. What is not known is refused."""

from __future__ import annotations

import json
import re
import zlib
from typing import Any, Mapping, NamedTuple, Optional

from .errors import RoutingError
from .split import BUCKETS

API_VERSION = "ringwright.dev/v1alpha1"
MAX_BYTES = 512 << 10
MAX_CHUNKS = 16
MAX_NAMESPACE_BYTES = 63
MAX_NAME_BYTES = 253
MAX_DATACENTERS = 1024
MAX_DATACENTER_BYTES = 63
ANY_DATACENTER = "*"

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NAMESPACE = re.compile(_LABEL)
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_MAX_NUMBER = 2**63 - 1
_CHECKSUM = b',"checksum":"%08x"}\n'


class Reference(NamedTuple):
    """A snapshot and where it lies. A revision of 0 is not known."""

    slot: str
    digest: str
    version: str
    revision: int
    chunks: int

    def files(self) -> list[tuple[str, str]]:
        """Return the files that make up the snapshot: for each the folder that it may lie in, and its name."""
        files = [(self.slot, f"ring-{self.slot}.snap")]
        files += [(f"{self.slot}-{i}", f"ring-{self.slot}.snap.{i}") for i in range(1, self.chunks)]
        return files


class Split(NamedTuple):
    """Which keys the candidate answers, by datacenter."""

    seed: int
    basis_points: Mapping[str, int]

    def at(self, datacenter: str) -> int:
        """Return the basis points of a datacenter; the empty one is one that has none of its own."""
        if datacenter and datacenter in self.basis_points:
            return self.basis_points[datacenter]
        return self.basis_points.get(ANY_DATACENTER, 0)


class Routing(NamedTuple):
    """The content of routing.json."""

    ring: str
    uid: str
    generation: int
    leader_epoch: int
    stable: Reference
    candidate: Optional[Reference]
    split: Optional[Split]
    addresses: Mapping[str, str]
    down: frozenset[str]


def parse(data: bytes) -> Routing:
    """Return the content of a routing.json; it raises RoutingError."""
    top = _Object("", _decode(data))
    version = top.text("apiVersion")
    if version != API_VERSION:
        raise RoutingError("apiVersion", f"{version!r}, this reader knows {API_VERSION}")
    ring = top.text("ring")
    if not _is_ring(ring):
        raise RoutingError("ring", f"{ring[:80]!r} is not namespace/name as Kubernetes takes them, of at most 63 and 253 bytes")
    routing = Routing(
        ring=ring,
        uid=top.text("uid", ""),
        generation=top.number("generation", 1, _MAX_NUMBER),
        leader_epoch=top.number("leaderEpoch", 0, _MAX_NUMBER, 0),
        stable=_reference(top.object("stable")),
        candidate=_reference(top.object("candidate")) if "candidate" in top.values else None,
        split=_split(top.object("split")) if "split" in top.values else None,
        addresses=_addresses(top),
        down=_down(top),
    )
    if "checksum" in top.values:
        _check_sum(top.text("checksum"), data)
    top.finish()
    if routing.split and not routing.candidate:
        raise RoutingError("split", "is there without a candidate")
    if routing.candidate and routing.candidate.slot == routing.stable.slot:
        raise RoutingError("candidate.slot", f"{routing.candidate.slot} is that of stable")
    return routing


def _is_ring(text: str) -> bool:
    """Return whether the text is the namespace and name of a HashRing as Kubernetes takes them."""
    namespace, _, name = text.partition("/")
    if len(namespace) > MAX_NAMESPACE_BYTES or len(name) > MAX_NAME_BYTES:
        return False
    return bool(_NAMESPACE.fullmatch(namespace) and _NAME.fullmatch(name))


def _decode(data: bytes) -> dict[str, Any]:
    if len(data) > MAX_BYTES:
        raise RoutingError("", f"{len(data)} bytes, the limit is {MAX_BYTES}")
    try:
        value = json.loads(data.decode(), object_pairs_hook=_pairs, parse_float=_refuse, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise RoutingError("", f"not JSON of routing: {error}") from None
    if not isinstance(value, dict):
        raise RoutingError("", "not an object")
    return value


def _check_sum(digits: str, data: bytes) -> None:
    """Check that the field is the last of the file in its only form, and right."""
    body = data[: -len(_CHECKSUM % 0)]
    if not data.endswith(_CHECKSUM % zlib.crc32(body)):
        raise RoutingError("checksum", f"{digits!r} is wrong, or not the last field in its canonical form")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a name stands twice in an object")
    return values


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not a whole number")


_REQUIRED: Any = object()


class _Object:
    """An object of the file from which fields are taken, until none may be left."""

    def __init__(self, path: str, values: Any) -> None:
        if not isinstance(values, dict):
            raise RoutingError(path, "not an object")
        self.path = path
        self.values = dict(values)

    def field(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def take(self, name: str, default: Any = _REQUIRED) -> Any:
        value = self.values.pop(name, default)
        if value is _REQUIRED:
            raise RoutingError(self.field(name), "is missing")
        return value

    def text(self, name: str, default: Any = _REQUIRED) -> str:
        return _text(self.field(name), self.take(name, default))

    def number(self, name: str, least: int, most: int, default: Any = _REQUIRED) -> int:
        value = self.take(name, default)
        if type(value) is not int or not least <= value <= most:
            raise RoutingError(self.field(name), f"{value!r} is not a number from {least} to {most}")
        return value

    def object(self, name: str, default: Any = _REQUIRED) -> _Object:
        return _Object(self.field(name), self.take(name, default))

    def finish(self) -> None:
        if self.values:
            raise RoutingError(self.field(min(self.values)), "this reader does not know the field")


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str) or any("\ud800" <= c <= "\udfff" for c in value):
        raise RoutingError(field, "not text")
    return value


def _reference(fields: _Object) -> Reference:
    reference = Reference(
        slot=fields.text("slot"),
        digest=fields.text("digest"),
        version=fields.text("version"),
        revision=fields.number("revision", 0, _MAX_NUMBER, 0),
        chunks=fields.number("chunks", 2, MAX_CHUNKS) if "chunks" in fields.values else 1,
    )
    fields.finish()
    if reference.slot not in ("a", "b"):
        raise RoutingError(fields.field("slot"), f"{reference.slot!r} is not a or b")
    if not _DIGEST.fullmatch(reference.digest):
        raise RoutingError(fields.field("digest"), f"{reference.digest!r} is not sha256: and 64 hex digits")
    if not reference.version:
        raise RoutingError(fields.field("version"), "is empty")
    return reference


def _split(fields: _Object) -> Split:
    seed = fields.number("seed", 0, 2**32 - 1)
    points = fields.object("basisPoints")
    fields.finish()
    if len(points.values) > MAX_DATACENTERS:
        raise RoutingError(points.path, f"{len(points.values)} entries, the limit is {MAX_DATACENTERS}")
    basis_points = {}
    for name in list(points.values):
        if not 1 <= len(_text(points.path, name).encode()) <= MAX_DATACENTER_BYTES:
            raise RoutingError(points.path, f"the name {name!r} does not have 1 to {MAX_DATACENTER_BYTES} bytes")
        basis_points[name] = points.number(name, 0, BUCKETS)
    return Split(seed, basis_points)


def _addresses(top: _Object) -> dict[str, str]:
    values = top.object("addresses", {})
    return {_text(values.path, name): values.text(name) for name in list(values.values)}


def _down(top: _Object) -> frozenset[str]:
    values = top.take("down", [])
    if not isinstance(values, list):
        raise RoutingError("down", "not a list")
    last = b""
    for i, value in enumerate(values):
        name = _text(f"down[{i}]", value).encode()
        if name <= last:
            raise RoutingError(f"down[{i}]", f"{value!r} is empty or does not come after the one before")
        last = name
    return frozenset(values)
