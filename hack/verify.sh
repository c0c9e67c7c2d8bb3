#!/bin/sh
# Checks that leave the working tree alone: verify.sh generated | formatted
set -eu
cd "$(dirname "$0")/.."

# What git would commit: tracked files and new ones, without those that are ignored or deleted.
files() {
	git ls-files --cached --others --exclude-standard | while IFS= read -r file; do
		if [ -f "$file" ]; then printf '%s\n' "$file"; fi
	done
}

# generated regenerates in a copy, so that a failure half-way does not leave the working tree half-generated.
generated() {
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	mkdir "$work/before" "$work/after"
	files >"$work/list"
	tar -cf "$work/tree.tar" -T "$work/list"
	tar -xf "$work/tree.tar" -C "$work/before"
	tar -xf "$work/tree.tar" -C "$work/after"
	make -s -C "$work/after" generate
	if ! (cd "$work" && diff -ru before after); then
		echo "Generated files are out of date. Run: make generate" >&2
		exit 1
	fi
}

formatted() {
	unformatted=$(files | grep '\.go$' | tr '\n' '\0' | xargs -0 gofmt -l)
	if [ -n "$unformatted" ]; then
		printf 'Not formatted. Run make fmt:\n%s\n' "$unformatted" >&2
		exit 1
	fi
}

"$1"
