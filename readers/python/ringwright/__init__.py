# SPDX-License-Identifier: Apache-2.0
"""A reader of Ringwright's consistent-hash rings that needs nothing but Python.

    directory = ringwright.Directory("/etc/ring", datacenter="lab01")
    state = directory.load()
    backend = state.decide("user:1234", features=["ssd"])[0]
    ...
    state = directory.load(state)  # again and again; a LoadError leaves the old state good

It reads what docs/snapshot-format.md of Ringwright describes, and refuses what is not so.
"""

from .directory import Directory
from .errors import Error, FormatError, LoadError, RoutingError, StaleError, UnknownFeatureError
from .routing import Reference, Routing, Split
from .snapshot import Ring, Snapshot, position
from .split import bucket
from .state import Decision, LoadedRing, State
from .tables import Backend

__all__ = [
    "Backend", "Decision", "Directory", "Error", "FormatError", "LoadError", "LoadedRing", "Reference", "Ring", "Routing",
    "RoutingError", "Snapshot", "Split", "StaleError", "State", "UnknownFeatureError", "bucket", "position",
]
