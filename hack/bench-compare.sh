#!/bin/sh
# Compares the benchmarks of commit BASE with those of the working tree. The two take turns, so that a machine that gets
# slower with time does not look like a change. Six rounds or more are needed for a meaningful figure.
set -eu
cd "$(dirname "$0")/.."
rounds=${COUNT:-1}
if [ "$rounds" -lt 6 ]; then rounds=6; fi

work=$(mktemp -d)
trap 'git worktree remove --force "$work/base" 2>/dev/null || :; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/base" "$BASE"

# run DIRECTORY FILE: appends one round. A package that BASE does not have yet is left out there.
run() {
	packages=
	for package in $(hack/packages-with.sh Benchmark); do
		if [ -d "$1/$package" ]; then packages="$packages $package"; fi
	done
	[ -n "$packages" ] || return 0
	# shellcheck disable=SC2086
	go -C "$1" test -run '^$' -bench "${BENCH:-.}" -benchtime "${BENCHTIME:-1s}" -benchmem $packages >>"$2"
}

: >"$work/base.txt"
: >"$work/new.txt"
round=1
while [ "$round" -le "$rounds" ]; do
	echo "Round $round of $rounds" >&2
	run "$work/base" "$work/base.txt"
	run . "$work/new.txt"
	round=$((round + 1))
done
$BENCHSTAT "base=$work/base.txt" "new=$work/new.txt"
