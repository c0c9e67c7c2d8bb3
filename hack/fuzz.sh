#!/bin/sh
# Fuzzes each target for FUZZTIME, one after the other: Go fuzzes one target at a time.
# Minimising is kept short: by default Go spends a minute on each new input, and does little else in a short run.
set -eu
cd "$(dirname "$0")/.."
for package in $(hack/packages-with.sh Fuzz); do
	targets=$(go test -list '^Fuzz' "$package")
	for target in $(printf '%s\n' "$targets" | grep '^Fuzz'); do
		echo "$package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 200x "$package"
	done
done
