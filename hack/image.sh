#!/bin/sh
# Builds the image of the Dockerfile with buildah, without a daemon, into an archive for each platform that PLATFORMS
# names, checks what it has built, and prints the archives' paths and sizes:
#
#   IMAGE=localhost/ringwright:e2e PLATFORMS=linux/amd64,linux/arm64 hack/image.sh DIR
#
# Where no registry answers, stand-ins take the place of the two images that the Dockerfile starts from, and it says so:
# the one that compiles is this machine's Go, the other one has what programs find in the real one, and nothing more.
set -eu
cd "$(dirname "$0")/.."

out=${1:?name a directory for the archives}
image=${IMAGE:-localhost/ringwright:latest}
platforms=${PLATFORMS:-linux/$(go env GOARCH)}
version=${VERSION:-$(git describe --always --dirty --match 'v*')}
revision=$(git rev-parse HEAD)
# What was committed at one time is built with that time, so that it has the same bytes tomorrow.
timestamp=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ringwright/buildah
# As the Dockerfile has them.
compiler=docker.io/library/golang:$(sed -n 's/^ARG GO_VERSION=//p' Dockerfile)
base=$(sed -n 's/^FROM \(gcr\.io.*\)/\1/p' Dockerfile)

if ! command -v buildah >/dev/null; then
	echo "buildah is missing: apt-get install -y --no-install-recommends buildah busybox-static" >&2
	exit 1
fi

# Storage of its own, so that the machine's images stay as they are. In TMPDIR is the cache of the RUN lines.
export TMPDIR="$cache/tmp"
bud() {
	buildah --root "$cache/root" --runroot "$cache/run" "$@"
}

# reachable IMAGE: a stand-in of that name, from an earlier run, does not count.
reachable() {
	timeout 20 buildah --root "$cache/root" --runroot "$cache/run" pull --policy always --quiet "$1" >/dev/null 2>&1
}

# compiler_standin makes an image of this machine's Go and of busybox, which is the shell of its RUN lines.
compiler_standin() {
	if [ ! -x /bin/busybox ]; then
		echo "busybox is missing: apt-get install -y --no-install-recommends busybox-static" >&2
		exit 1
	fi
	container=$(bud from scratch)
	root=$(bud mount "$container")
	mkdir -p "$root/bin" "$root/etc/ssl/certs" "$root/usr/local" "$root/go"
	mkdir -m 1777 "$root/tmp"
	cp /bin/busybox "$root/bin/"
	for applet in sh mkdir; do ln -s busybox "$root/bin/$applet"; done
	cp -R "$(go env GOROOT)" "$root/usr/local/go"
	cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
	# The cache mounts of the RUN lines are this machine's own caches: what it has compiled is not compiled again. Should
	# another buildah keep them elsewhere, the build only takes longer.
	rm -rf "$TMPDIR/buildah-cache"
	mkdir -p "$TMPDIR/buildah-cache/go/pkg"
	ln -sfn "$(go env GOCACHE)" "$TMPDIR/buildah-cache/go/build"
	ln -sfn "$(go env GOMODCACHE)" "$TMPDIR/buildah-cache/go/pkg/mod"
	bud config --env PATH=/usr/local/go/bin:/bin --env GOPATH=/go --env GOTOOLCHAIN=local "$container"
	bud commit --quiet --timestamp "$timestamp" --rm "$container" "$compiler" >/dev/null
}

# base_standin makes an image with the accounts and the certificate authorities that a static program may ask for.
base_standin() {
	container=$(bud from --arch "$1" scratch)
	root=$(bud mount "$container")
	mkdir -p "$root/etc/ssl/certs" "$root/home/nonroot"
	mkdir -m 1777 "$root/tmp"
	cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
	printf '%s\n' root:x:0:0:root:/root:/sbin/nologin nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin >"$root/etc/passwd"
	printf '%s\n' root:x:0: nonroot:x:65532: >"$root/etc/group"
	chown 65532:65532 "$root/home/nonroot"
	bud config --arch "$1" --user 65532 --workingdir /home/nonroot "$container"
	bud commit --quiet --timestamp "$timestamp" --rm "$container" "$base" >/dev/null
}

# build PLATFORM ARCHIVE
build() {
	arch=${1#linux/}
	if [ "$standins" = yes ]; then base_standin "$arch"; fi
	bud build --quiet --isolation chroot --pull="$pull" --layers --platform "$1" --timestamp "$timestamp" \
		--build-arg "BUILDPLATFORM=linux/$(go env GOHOSTARCH)" --build-arg TARGETOS=linux --build-arg "TARGETARCH=$arch" \
		--build-arg "VERSION=$version" --build-arg "REVISION=$revision" --tag "$image" . >/dev/null
	check "$arch"
	rm -f "$2"
	bud push --quiet "$image" "docker-archive:$2:$image"
	printf '%s\t%s bytes\n' "$2" "$(wc -c <"$2")"
}

# check reports what an image of ours must not be.
check() {
	user=$(bud inspect --type image --format '{{.OCIv1.Config.User}}' "$image")
	[ "$user" = 65532:65532 ] || { echo "The image runs as ${user:-root}." >&2; exit 1; }
	container=$(bud from --pull-never "$image")
	root=$(bud mount "$container")
	for shell in sh bash busybox; do
		if find "$root" -name "$shell" | grep .; then echo "The image has a shell." >&2; exit 1; fi
	done
	for program in manager agent balancer; do
		built=$(go version -m "$root/$program" | sed -n 's/^\tbuild\tGOARCH=//p')
		[ "$built" = "$1" ] || { echo "$program is for ${built:-nothing} and not for $1." >&2; exit 1; }
	done
	if [ "$1" = "$(go env GOHOSTARCH)" ]; then
		has=$("$root/agent" --version)
		[ "$has" = "$version" ] || { echo "The agent calls itself $has and not $version." >&2; exit 1; }
	fi
	bud rm "$container" >/dev/null
}

mkdir -p "$out" "$TMPDIR"
standins=no pull=true
if ! reachable "$base" || ! reachable "$compiler"; then
	echo "No registry answers: building with stand-ins for $compiler and $base." >&2
	standins=yes pull=false
	compiler_standin
fi
for platform in $(echo "$platforms" | tr , ' '); do
	build "$platform" "$out/image-$(echo "$platform" | tr / -).tar"
done
