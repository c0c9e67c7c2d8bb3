# SPDX-License-Identifier: Apache-2.0
"""python -m ringwright lookup DIR KEY: which backend takes a key."""

from __future__ import annotations

import argparse
import sys

from . import Directory, Error


def main() -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m ringwright", description="Look keys up on a ring.")
    commands = parser.add_subparsers(dest="command", required=True)
    lookup = commands.add_parser("lookup", help="print the backends for each key, the owner first")
    lookup.add_argument("directory", help="where the ConfigMaps of the ring are mounted")
    lookup.add_argument("key", nargs="+", help="key to look up")
    lookup.add_argument("--datacenter", default="", help="where this reader runs, for the split of a migration")
    lookup.add_argument("--features", default="", help="features that the backend must have, with commas in between")
    lookup.add_argument("-n", type=int, default=1, help="how many backends to print, distinct ones (default 1)")
    arguments = parser.parse_args()
    if arguments.n < 1:
        parser.error(f"argument -n: {arguments.n} is not at least 1")
    try:
        return _lookup(arguments)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _lookup(arguments: argparse.Namespace) -> int:
    state = Directory(arguments.directory, datacenter=arguments.datacenter).load()
    features = [feature for feature in arguments.features.split(",") if feature]
    status = 0
    for key in arguments.key:
        decisions = state.decide(key.encode("utf-8", "surrogateescape"), features, arguments.n)
        for d in decisions:
            print(key, d.identity, d.address or "-", d.zone or "-", d.role, sep="\t")
        if not decisions:
            print(f"error: {key}: no backend takes it", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
