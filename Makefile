# Everything works on a fresh clone with Go, make, git and a network that reaches a Go module proxy. The first run builds
# its tools, and with `make test` an API server, into Go's caches; later runs find them there.

SHELL := /bin/sh
.SHELLFLAGS := -euc
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# Modules with code, and modules that only pin tools.
CODE_MODULES := . hack/controlplane hack/node hack/protoc test/chart test/materialize
TOOL_MODULES := hack/tools hack/tools/golangci
# hack/tools/prometheus is not among them: to tidy it takes the libraries of all clouds, and its build none of those.

CONTROLLER_GEN := go tool -modfile=hack/tools/go.mod controller-gen
BENCHSTAT      := go tool -modfile=hack/tools/go.mod benchstat
GOLANGCI_LINT  := go tool -modfile=$(CURDIR)/hack/tools/golangci/go.mod golangci-lint

# The race detector needs a C compiler. Without one Go turns cgo off, and the tests run without the detector.
RACE ?= $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# Packages under test, and the tests to run: make test PKGS=./pkg/... RUN=TestLookup
PKGS ?= ./...
RUN  ?= .

BENCH     ?= .
BENCHTIME ?= 1s
TIMED ?= fail
LOAD  ?=
COUNT     ?= 1
FUZZTIME  ?= 30s
FOCUS     ?=
BASE      ?= main

IMAGE          ?= ringwright:latest
PLATFORMS      ?= linux/amd64,linux/arm64
CONTAINER_TOOL ?= docker
NODE           ?=

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN { FS = ":.*## " } \
		/^## / { printf "\n%s\n", substr($$0, 4) } \
		/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.DEFAULT_GOAL := help

## Code

.PHONY: generate
generate: ## Regenerate deepcopy functions, apply configurations, CRDs, RBAC, the gRPC code and dist.
	rm -rf api/v1alpha1/applyconfiguration config/crd/bases api/*/v1/zz_generated.*
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt \
		applyconfiguration:headerFile=hack/boilerplate.go.txt paths=./api/...
	$(CONTROLLER_GEN) crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	$(CONTROLLER_GEN) rbac:roleName=manager-role paths=./internal/controller/... output:rbac:artifacts:config=config/rbac
	$(CONTROLLER_GEN) rbac:roleName=balancer-role paths=./internal/weights/... output:rbac:artifacts:config=config/balancer
	go -C hack/protoc run . ../../api
	$(MAKE) dist IMAGE=ringwright:latest

.PHONY: fmt
fmt: ## Format the Go code.
	gofmt -w .

.PHONY: tidy
tidy: ## Bring go.mod and go.sum of every module in order.
	for module in $(CODE_MODULES) $(TOOL_MODULES); do go -C "$$module" mod tidy; done

.PHONY: vet
vet: ## Run go vet in every module.
	for module in $(CODE_MODULES); do go -C "$$module" vet ./...; done

.PHONY: lint
lint: ## Run golangci-lint in every module.
	for module in $(CODE_MODULES); do (cd "$$module" && $(GOLANGCI_LINT) run); done

.PHONY: build
build: ## Build the programs into bin/.
	mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

.PHONY: demo
demo: ## Run everything on this machine until Ctrl-C; with ONCE=1 run through, check, and exit.
	@assets=$$(go -C hack/controlplane run .) && \
		KUBEBUILDER_ASSETS="$$assets" && export KUBEBUILDER_ASSETS && \
		mkdir -p bin && go build -o bin/demo ./hack/demo && exec bin/demo $(if $(filter 1,$(ONCE)),-once)

.PHONY: demo-migration
demo-migration: ## Show a migration between two rings on this machine, a rollback included; ONCE=1 as with demo.
	@assets=$$(go -C hack/controlplane run .) && \
		KUBEBUILDER_ASSETS="$$assets" && export KUBEBUILDER_ASSETS && \
		mkdir -p bin && go build -o bin/demo ./hack/demo && exec bin/demo -migration $(if $(filter 1,$(ONCE)),-once)

.PHONY: demo-weights
demo-weights: ## Show weights that follow the load of real gRPC servers on this machine; ONCE=1 as with demo.
	@assets=$$(go -C hack/controlplane run .) && \
		KUBEBUILDER_ASSETS="$$assets" && export KUBEBUILDER_ASSETS && \
		mkdir -p bin && go build -o bin/demo ./hack/demo && exec bin/demo -weights $(if $(filter 1,$(ONCE)),-once)

.PHONY: node-up
node-up: ## Start a real Kubernetes of one node on this machine, as root; NODE holds flags, such as -sync-frequency=10s.
	@go -C hack/node run . up $(NODE)

.PHONY: node-down
node-down: ## Stop it, and remove everything that it had.
	@go -C hack/node run . down

## Checks

.PHONY: verify
verify: ## Fail if generated files, formatting, modules, vet or lint are not in order. Changes nothing.
	hack/verify.sh generated
	hack/verify.sh formatted
	for module in $(CODE_MODULES) $(TOOL_MODULES); do go -C "$$module" mod tidy -diff; done
	$(MAKE) vet
	$(MAKE) lint

.PHONY: test
test: ## Run all tests, with an API server of their own.
	$(if $(RACE),,@echo "No C compiler: testing without the race detector." >&2)
	assets=$$(go -C hack/controlplane run .) && \
		KUBEBUILDER_ASSETS="$$assets" go test $(RACE) -shuffle=on -timeout=40m -run '$(RUN)' $(PKGS)
	go -C hack/controlplane test $(RACE) -shuffle=on -run '$(RUN)' ./...
	go -C hack/node test $(RACE) -shuffle=on -run '$(RUN)' ./...
# The claims about load-aware weights are about the worst of 20 runs, for which the race detector leaves no time.
	go test -shuffle=on -run '$(RUN)' ./internal/balance/sim
# Without the race detector: nothing runs at once there, and they take half of Kubernetes, or Helm, to build.
	go -C test/materialize test -shuffle=on -run '$(RUN)' ./...
	assets=$$(go -C hack/controlplane run .) && \
		KUBEBUILDER_ASSETS="$$assets" go -C test/chart test -shuffle=on -run '$(RUN)' ./...
	$(MAKE) test-readers

.PHONY: test-readers
test-readers: ## Run the tests of the readers in Rust and Python, where cargo and python3 are.
	hack/test-readers.sh

.PHONY: e2e
e2e: ## Install everything on a real node of this machine and go through the whole story, as root; FOCUS is a regular expression.
	E2E=1 go test -count=1 -v -timeout=60m ./test/e2e -ginkgo.label-filter='!propagation' -ginkgo.focus='$(FOCUS)'

.PHONY: propagation
propagation: ## Measure how long a snapshot takes to the agents with a kubelet as it is shipped, as root.
	E2E=1 E2E_SYNC=1m go test -count=1 -v -timeout=60m ./test/e2e -ginkgo.label-filter=propagation

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME (30s).
	FUZZTIME=$(FUZZTIME) hack/fuzz.sh

.PHONY: bench
bench: ## Run the benchmarks: BENCH (.), BENCHTIME (1s), COUNT (1).
	@go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -count $(COUNT) -benchmem \
		$$(hack/packages-with.sh Benchmark)

.PHONY: bars
bars: ## Measure each claim of size and speed, and fail if one is short; TIMED=report forgives the speeds.
	@go run ./hack/bars -timed=$(TIMED)

.PHONY: load
load: ## Run the operator with 1,000 HashRings and fail if it is short of a limit; LOAD holds flags, such as -rings=20.
	@assets=$$(go -C hack/controlplane run .) && \
		KUBEBUILDER_ASSETS="$$assets" go run ./test/load -timed=$(TIMED) $(LOAD)

.PHONY: bench-compare
bench-compare: ## Compare the benchmarks of BASE (main) with those of the working tree.
	BENCHSTAT="$(BENCHSTAT)" BASE='$(BASE)' BENCH='$(BENCH)' BENCHTIME=$(BENCHTIME) COUNT=$(COUNT) hack/bench-compare.sh

## Delivery

.PHONY: dist
dist: ## Write dist/install.yaml, for the image IMAGE, and the files of the Helm chart.
	go run ./hack/dist -image '$(IMAGE)'

.PHONY: docker-build
docker-build: ## Build the image IMAGE for PLATFORMS with CONTAINER_TOOL.
	$(CONTAINER_TOOL) buildx build --platform $(PLATFORMS) --tag $(IMAGE) .

.PHONY: image
image: ## Build the image IMAGE for PLATFORMS with buildah, without a daemon, into archives in bin/.
	IMAGE=$(IMAGE) PLATFORMS=$(PLATFORMS) hack/image.sh bin

.PHONY: clean
clean: ## Remove what the build left in the working tree.
	rm -rf bin
