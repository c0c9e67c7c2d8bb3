# syntax=docker/dockerfile:1

# One image for the operator, the agent and the balancer, for every platform that Go and the base image know:
#
#   docker buildx build --platform linux/amd64,linux/arm64 --tag ringwright .
#
# The compiler runs on the builder's own platform and cross-compiles, so that no emulation is needed.
ARG GO_VERSION=1.26

FROM --platform=$BUILDPLATFORM golang:${GO_VERSION} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY api api
COPY cmd cmd
COPY internal internal
COPY pkg pkg
ARG TARGETOS
ARG TARGETARCH
ARG VERSION
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/go/build \
    mkdir -p /out && \
    GOCACHE=/go/build CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags="-s -w -X main.version=${VERSION}" -o /out/ ./cmd/manager ./cmd/agent ./cmd/balancer

FROM gcr.io/distroless/static-debian12:nonroot
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="Ringwright" \
    org.opencontainers.image.description="Consistent-hash rings for Kubernetes: operator, agent and balancer" \
    org.opencontainers.image.source="https://github.com/ringwright/ringwright" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
COPY --from=build /out/manager /out/agent /out/balancer /
USER 65532:65532
ENTRYPOINT ["/manager"]
