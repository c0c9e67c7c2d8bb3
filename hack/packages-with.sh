#!/bin/sh
# Prints the packages of the main module that have a test function of a kind: packages-with.sh Benchmark | Fuzz
# Only those are compiled then: a test program with an API server's client takes long to link.
set -eu
cd "$(dirname "$0")/.."
git grep --untracked -lE "^func $1[A-Z]" -- '*_test.go' ':!hack/controlplane' |
	while IFS= read -r file; do printf './%s\n' "$(dirname "$file")"; done | sort -u
