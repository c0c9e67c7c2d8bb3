# SPDX-License-Identifier: Apache-2.0
"""Which keys the candidate answers while a migration runs."""

from __future__ import annotations

from .checksum import mix

BUCKETS = 10_000


def bucket(position: int, seed: int) -> int:
    """Return the bucket, 0 to 9,999, of the key that has a position on the ring."""
    return mix(position ^ seed) % BUCKETS
