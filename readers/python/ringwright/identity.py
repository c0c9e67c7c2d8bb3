# SPDX-License-Identifier: Apache-2.0
"""Identities: which are legal, what is hashed for them, and the order that numbers the backends."""

from __future__ import annotations

import re
from typing import Any, Callable, NamedTuple

ADDRESS, NGINX, NAME = 1, 2, 3

_MAX_NAME = 253
_DECIMAL = re.compile(r"0|[1-9][0-9]*", re.ASCII)
_HEX = re.compile(r"[0-9A-Fa-f]{1,4}", re.ASCII)
_NOT_IN_HOST = frozenset("[]/;{}\"'$#?\\")


class Identity(NamedTuple):
    """A legal identity: what is hashed for it, and the key that sorts it."""

    hash_input: bytes
    order: tuple[Any, ...]


def is_name(text: bytes) -> bool:
    """Report whether text can be the name of a feature, a zone or a backend."""
    return 1 <= len(text) <= _MAX_NAME and all(0x21 <= byte <= 0x7E for byte in text)


def parser(kind: int) -> Callable[[bytes], Identity]:
    """Return the function that parses identities of a kind. It raises ValueError with the reason."""
    return {ADDRESS: _address, NGINX: _nginx, NAME: _name}[kind]


def _name(text: bytes) -> Identity:
    if not is_name(text):
        raise ValueError("a name has 1 to 253 bytes, each 0x21 to 0x7e")
    return Identity(text, (text,))


def _address(text: bytes) -> Identity:
    host, colon, port = _ascii(text).rpartition(":")
    if not colon:
        raise ValueError("an address has a port")
    number = _port(port)
    if host.startswith("["):
        bare = host[1:-1]
        address = _ipv6(bare) if host.endswith("]") else None
        if address is None or _canonical_ipv6(address) != bare:
            raise ValueError("not an IPv6 address in brackets in the form of RFC 5952")
        family = 6
    else:
        bare, family = host, 4
        address = _ipv4(host)
        if address is None:
            raise ValueError("not an IPv4 address")
    return Identity(f"{bare}\0{port}".encode(), (family, address, number))


def _nginx(text: bytes) -> Identity:
    server = _ascii(text)
    host, port = _split_server(server)
    if not 1 <= len(host) <= _MAX_NAME or not all("\x21" <= c <= "\x7e" for c in host):
        raise ValueError("a host has 1 to 253 bytes, each 0x21 to 0x7e")
    number = _port(port) if port is not None else 0
    hash_input = f"{host}\0{port or ''}".encode()
    if host.startswith("["):
        address = _ipv6(host[1:-1]) if host.endswith("]") else None
        if address is None:
            raise ValueError("not an IPv6 address in brackets")
        return Identity(hash_input, (0, 6, address, number, text))
    address = _ipv4(host)
    if address is not None:
        return Identity(hash_input, (0, 4, address, number, text))
    if _NOT_IN_HOST.intersection(host) or ":" in host:
        raise ValueError("a host name has a byte that NGINX reads otherwise")
    if port is not None and host.lower() == "unix":
        raise ValueError("a socket is no host")
    return Identity(hash_input, (1, 0, host.encode(), number, text))


def _split_server(server: str) -> tuple[str, str | None]:
    host, colon, port = server.rpartition(":")
    if not colon or server.endswith("]"):
        return server, None
    return host, port


def _ascii(text: bytes) -> str:
    try:
        return text.decode("ascii")
    except UnicodeDecodeError:
        raise ValueError("not ASCII") from None


def _port(text: str) -> int:
    if not _DECIMAL.fullmatch(text) or len(text) > 5 or not 1 <= int(text) <= 65535:
        raise ValueError("a port is a number from 1 to 65535 without leading zeros")
    return int(text)


def _ipv4(text: str) -> bytes | None:
    parts = text.split(".")
    if len(parts) != 4 or not all(len(p) <= 3 and _DECIMAL.fullmatch(p) and int(p) <= 255 for p in parts):
        return None
    return bytes(map(int, parts))


def _ipv6(text: str) -> bytes | None:
    """Return the 16 bytes of an address in any spelling of RFC 4291, or None."""
    front, gap, back = text.partition("::")
    if not gap:
        groups = _groups(text, True)
        return groups if groups is not None and len(groups) == 16 else None
    head, tail = _groups(front, False), _groups(back, True)
    if head is None or tail is None or len(head) + len(tail) > 14:
        return None
    return head + bytes(16 - len(head) - len(tail)) + tail


def _groups(text: str, last: bool) -> bytes | None:
    """Return the bytes of groups with colons between them; the last of an address may end in four decimals."""
    if not text:
        return b""
    parts = text.split(":")
    decimals = b""
    if last and "." in parts[-1]:
        embedded = _ipv4(parts.pop())
        if embedded is None:
            return None
        decimals = embedded
    if not all(_HEX.fullmatch(part) for part in parts):
        return None
    return b"".join(int(part, 16).to_bytes(2, "big") for part in parts) + decimals


def _canonical_ipv6(address: bytes) -> str:
    """Return the spelling of RFC 5952, with decimals for IPv4 addresses mapped into IPv6 and no others."""
    if address[:12] == bytes(10) + b"\xff\xff":
        return "::ffff:" + ".".join(map(str, address[12:]))
    groups = [int.from_bytes(address[i : i + 2], "big") for i in range(0, 16, 2)]
    start, length, i = 0, 0, 0
    while i < 8:
        end = i
        while end < 8 and groups[end] == 0:
            end += 1
        if end - i > length:
            start, length = i, end - i
        i = end + 1
    if length < 2:
        return ":".join(f"{group:x}" for group in groups)
    return ":".join(f"{g:x}" for g in groups[:start]) + "::" + ":".join(f"{g:x}" for g in groups[start + length :])
