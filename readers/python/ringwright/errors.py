# SPDX-License-Identifier: Apache-2.0
"""What can be wrong: with a file, with a directory, with a question."""

from __future__ import annotations


class Error(Exception):
    """The class of all errors of this package."""


class FormatError(Error):
    """A snapshot breaks a rule of the format. `field` names what is wrong, `offset` where it stands in the file."""

    def __init__(self, field: str, offset: int, reason: str) -> None:
        super().__init__(f"snapshot: {field} at offset {offset}: {reason}")
        self.field = field
        self.offset = offset


class RoutingError(Error):
    """A routing.json breaks a rule. `field` is its path, as in `stable.slot`."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"routing.json: {field}: {reason}" if field else f"routing.json: {reason}")
        self.field = field


class LoadError(Error):
    """A directory holds nothing that can be switched to now. What was loaded before stays good."""


class StaleError(LoadError):
    """The directory goes back behind what was loaded before."""


class UnknownFeatureError(Error):
    """A question names a feature that the ring does not declare."""

    def __init__(self, feature: str) -> None:
        super().__init__(f"feature {feature!r} is not declared by the ring")
        self.feature = feature
