# Trunkline. `make` lists the targets.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
REVISION ?= $(shell git rev-parse --verify --quiet HEAD 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION) -X main.revision=$(REVISION)
# On Linux the program begins at its own entry, which sees whether it was started without a stdout (cmd/trunkline/entry_linux.go) and, on
# amd64, starts the programs of workers without a Go runtime (handlers/toolhost/workerexec).
ENTRY    := $(if $(filter linux/amd64 linux/arm64,$(shell $(GO) env GOOS)/$(shell $(GO) env GOARCH)),-E main.entry)
BUILD     = CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(strip $(LDFLAGS) $(ENTRY))'
BINARY   ?= bin/trunkline

# bench/cluster, bench/peers, bench/report and deploy/packages are modules of their own, so that what they need never enters the main one.
ROOMS      := bench cmd codec deploy engine fuzz handlers
CONCURRENT := ./engine/... ./handlers/...
# The core of them, which compiles fast under the race detector: without the database, HTTP and the event loop.
LIGHT      := $(addprefix ./engine/,bus connection idem $(addprefix internal/,bufpool poison sock) kernel orchestration procgroup table)
RACY       ?= $(CONCURRENT)
PLATFORMS  := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

PROFILE := cmd/trunkline/default.pgo
# Tests are built like the program that is shipped: that is what they are to test, the inlining by profile moves what escapes, and
# nothing has to be compiled twice.
SHIPPED  = CGO_ENABLED=0 GOFLAGS="$$($(GO) env GOFLAGS) -trimpath '-pgo=$(CURDIR)/$(PROFILE)'"
# Tests that start the program take the one that is built, instead of linking it in each of their packages (fuzz/kit).
PROGRAM  = TEST_BINARY='$(CURDIR)/bin/tested/trunkline'
TESTED   = $(SHIPPED) $(PROGRAM)
# The race detector finds the same without inlining by profile, and everything compiles a fourth faster.
RACED    = CGO_ENABLED=1 GOFLAGS="$$($(GO) env GOFLAGS) -trimpath" $(PROGRAM)

# Conversations with servers mostly wait, so more of them are held side by side than there are processors, and so are packages.
PARALLEL := -parallel 8
BESIDE   := -p 6
# The package that waits longest begins first, beside the others.
WAITING  := ./handlers/toolhost/conformance

FUZZTIME  ?= 5m
# How long make test runs each fuzz target, and by how much make test-long multiplies what randomized tests usually do.
MOMENT    ?= 300ms
LONG      ?= 8
ARGS      ?=
PEER      ?=
# Measures parts and writes the page, which lists what blocks its publication, usually parts measured on other machines.
measure    = @status=0; $(GO) run ./bench $(1) $(ARGS) || status=$$?; $(GO) -C bench/report run . -lenient || status=$$?; exit $$status

## —— Everyday ——

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^## / { sub(/^## /, ""); print "\n" $$0 } /^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## build and serve; ARGS="--listen …" for more
	$(BINARY) serve $(ARGS)

.PHONY: cluster-demo
cluster-demo: build ## a cluster of three nodes on this machine, until Ctrl-C
	@BINARY=$(BINARY) deploy/cluster/demo

.PHONY: threads-demo
threads-demo: build ## three agents review a change in a thread while the server is killed twice
	@BINARY=$(BINARY) docs/threads-demo/run

.PHONY: build
build: ## static binary bin/trunkline
	$(BUILD) -o $(BINARY) ./cmd/trunkline

# The program for tests, without the name of the commit: it changes when its sources do. go test caches
# results by its modification time, which go build renews also where nothing has changed.
.PHONY: tested
tested:
	@$(MAKE) --no-print-directory build BINARY=bin/tested/new VERSION=tested REVISION=unknown
	@cmp -s bin/tested/new bin/tested/trunkline || cp -f bin/tested/new bin/tested/trunkline

.PHONY: check
check: fmt vet lint tested ## what a commit must pass, under 2 minutes
	@$(TESTED) $(GO) test $(PARALLEL) $(BESIDE) -short -vet=off -ldflags=-w ./...

.PHONY: test
test: tested ## everything in its usual form: unit, properties, transcripts, race, each benchmark once, each fuzz target for a moment
	@echo '== tests, each benchmark once, each fuzz target for $(MOMENT)'
	@$(TESTED) $(GO) test $(PARALLEL) $(BESIDE) -vet=off -ldflags=-w -exec '"$(CURDIR)/fuzz/whole" $(MOMENT)' $(WAITING) ./...
	@$(MAKE) --no-print-directory race RACY='$(LIGHT)'

.PHONY: test-long
test-long: vet tested ## what make test has no time for: the long forms, race on all concurrent packages, each fuzz target guided for 3 s
	@echo '== long forms'
	@LONG_TESTS=$(LONG) $(TESTED) $(GO) test $(PARALLEL) -vet=off -ldflags=-w -timeout 20m $$(grep -rl --include='*_test.go' 'rounds\.' $(ROOMS) | xargs -n 1 dirname | sort -u | sed 's|^|./|')
	@$(SHIPPED) $(GO) -C bench/report test ./...
	@$(SHIPPED) $(GO) -C bench/cluster test ./...
	@$(SHIPPED) $(GO) -C deploy/packages test ./...
	@echo '== whole documents by the standard library'
	@$(SHIPPED) $(GO) test -vet=off -tags stdjson ./codec/jsonx/... ./handlers/threads/method ./handlers/threads/rest
	@echo '== each benchmark once, in all sizes'
	@$(TESTED) $(GO) test -vet=off -ldflags=-w -run '^$$' -bench . -benchtime 1x $$(grep -rl --include='*_test.go' --exclude-dir=peers '^func Benchmark' $(ROOMS) | xargs -n 1 dirname | sort -u | sed 's|^|./|')
	@$(MAKE) --no-print-directory race
	@$(MAKE) --no-print-directory fuzz FUZZTIME=3s

## —— Parts ——

.PHONY: fmt
fmt: ## fail on files that gofmt (and gofumpt, when installed) would change
	@out=$$(gofmt -l $(ROOMS)); \
	if command -v gofumpt >/dev/null; then out+=$$(gofumpt -l $(ROOMS)); fi; \
	if [[ -n $$out ]]; then echo "cannot accept formatting, run gofmt -w on:" >&2; echo "$$out" >&2; exit 1; fi

.PHONY: vet
vet: ## go vet (and staticcheck, when installed)
	@$(SHIPPED) $(GO) vet ./...
	@if command -v staticcheck >/dev/null; then staticcheck ./...; fi

.PHONY: lint
lint: ## the repository's own rules: imports, sizes, docs, words, package state, unused names
	@$(SHIPPED) $(GO) test -count=1 ./cmd/trunkline/internal/lint

.PHONY: race
race: tested ## the concurrent packages under the race detector, long tests shortened
	@echo '== race detector'
	@$(RACED) $(GO) test -race $(PARALLEL) $(BESIDE) -short -vet=off -ldflags=-w $(RACY)

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (5m)
	@echo '== each fuzz target for $(FUZZTIME)'
	@$(SHIPPED) $(GO) test -c -fuzz=. -o /dev/null ./fuzz # compiles what they share once, not in each of them
	@grep -rl --include='*_test.go' '^func Fuzz' $(ROOMS) | xargs -n 1 dirname | sort -u | \
		$(SHIPPED) GO=$(GO) xargs -n 1 -P "$$(getconf _NPROCESSORS_ONLN)" fuzz/run $(FUZZTIME)

.PHONY: cover
cover: ## coverage of all packages by all tests, coverage.html
	$(GO) test -coverpkg=./... -coverprofile=coverage.out ./...
	$(GO) tool cover -func=coverage.out | tail -n 1
	$(GO) tool cover -html=coverage.out -o coverage.html

.PHONY: docs
docs: ## check the links of all pages and the doc comments of all packages
	$(GO) test -count=1 -run 'Docs|Documented|SaysWhatItIs' ./cmd/trunkline/internal/lint

.PHONY: generate
generate: ## rebuild generated code
	$(GO) generate ./...

## —— Measuring: targets write bench/data/PART.json, BENCHMARKS.md and docs/charts, unless ARGS has -quick or -only ——

.PHONY: bench
bench: ## the benchmarks of bench/questions beside the baseline's sources, and what moved; ARGS="-only REGEXP"
	$(call measure,questions)

.PHONY: bench-baseline
bench-baseline: ## make the committed sources the baseline, bench/data/baseline.txt
	$(GO) run ./bench questions -update $(ARGS)

.PHONY: bench-peers
bench-peers: build ## the grid: bin/trunkline beside its peers, how its costs grow, and the goals; PEER=host:port adds one
	$(call measure,peers $(if $(ARGS),,scale) -server bin/trunkline $(if $(PEER),-peer $(PEER)))

.PHONY: bench-scale
bench-scale: build ## what grows: rows to 10M, idle connections, subscribers, payloads; and the collector
	$(call measure,scale -server bin/trunkline)

.PHONY: bench-report
bench-report: ## write BENCHMARKS.md and its charts from bench/data; it refuses figures of uncommitted sources or of several machines
	$(GO) -C bench/report run .

.PHONY: pgo
pgo: build ## profile the server again for profile-guided builds: cmd/trunkline/default.pgo
	@dir=$$(mktemp -d); trap 'rm -r "$$dir"' EXIT; \
	$(GO) run ./bench peers -server bin/trunkline -only goals -rounds 1 -profile "$$dir" >/dev/null; \
	$(GO) run ./bench store threads -server bin/trunkline -quick -redis off -profile "$$dir" >/dev/null; \
	TRUNKLINE_RECOVER_PROCESSES=200000 $(GO) test -run '^$$' -bench Recover -benchtime 3x -o "$$dir/recover.test" \
		-cpuprofile "$$dir/recover.pprof" ./handlers/ipc >/dev/null; \
	$(GO) test -run '^$$' -bench ToolLine -benchtime 2s -o "$$dir/lines.test" -cpuprofile "$$dir/lines.pprof" ./bench/questions >/dev/null; \
	$(GO) -C bench/report run ./pgo -o ../../$(PROFILE) "$$dir"
	$(SHIPPED) $(GO) test -run Alloc ./codec/... ./engine/... ./handlers/ipc ./handlers/toolhost ./bench/questions

.PHONY: bench-envelope
bench-envelope: build ## engine steps and agent reports beside what people would write
	$(call measure,envelopes -server bin/trunkline)

.PHONY: bench-sessions
bench-sessions: build ## more sessions than fit, each of 64 KiB, against bin/trunkline
	$(call measure,sessions -server bin/trunkline)

.PHONY: bench-store
bench-store: build ## what durability costs, beside a bare group-commit loop, redis and memory, and restarts, against bin/trunkline
	$(call measure,store restart -server bin/trunkline)

.PHONY: bench-cluster
bench-cluster: build ## three nodes: beside etcd, when the owner dies, what they hold
	$(call measure,cluster -server bin/trunkline)

.PHONY: bench-threads
bench-threads: build ## agent threads beside the kernel, a trivial tool, net/http and the SDKs of MCP, against bin/trunkline
	$(call measure,threads -server bin/trunkline)

.PHONY: bench-projects
bench-projects: build ## projects: commands beside a trivial tool, events beside the message bus, against bin/trunkline
	$(call measure,projects -server bin/trunkline)

.PHONY: bench-toolhost
bench-toolhost: build ## the tool server beside bare echo servers, kept workers beside one process per call, and starts
	$(call measure,tools -server bin/trunkline)

.PHONY: soak
soak: build ## long mixed load with checks of memory and goroutines, then 200 faults of a cluster
	$(call measure,soak -server bin/trunkline)
	TRUNKLINE_THREADS_MESSAGES=10000000 $(GO) test -run '^TestMemoryOfHistory$$' -v -timeout 60m ./engine/threadstore
	@$(MAKE) --no-print-directory soak-cluster ARGS=

FAULTS ?= 200

.PHONY: soak-cluster
soak-cluster: ## FAULTS (200) random faults of a cluster under load, one after the other; ARGS="-seed N" for those of another run
	LONG_TESTS=$(LONG) $(GO) test -count=1 -v -run '^TestCluster(Soak|LostAcks|Upgrade)$$' -timeout 0 ./cmd/trunkline -args -rounds $(FAULTS) $(ARGS)

.PHONY: hostile
hostile: build ## bad frames, slow readers and floods against bin/trunkline
	$(call measure,hostile -server bin/trunkline)

.PHONY: crash
crash: build ## SIGKILL bin/trunkline under load, again and again, and look what is left
	$(GO) test ./bench/crash -count=1 -v -run '^TestCrash$$' -timeout 0 -args -server $(CURDIR)/bin/trunkline -rounds 200 $(ARGS)

## —— Shipping ——

# The date of all files of a release: that of the commit, so that two runs make the same bytes.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
STAGE := dist/build

.PHONY: release
release: ## archives, deb, rpm, SBOM and checksums for PLATFORMS, in dist/; the same bytes at each run
	rm -rf dist && mkdir -p $(STAGE)/completions $(STAGE)/man
	for p in $(PLATFORMS); do \
		GOOS=$${p%/*} GOARCH=$${p#*/} $(MAKE) --no-print-directory build BINARY="$(STAGE)/$${p%/*}-$${p#*/}/trunkline"; \
	done
	$(MAKE) --no-print-directory build BINARY=$(STAGE)/here
	for s in bash fish; do $(STAGE)/here completion $$s > $(STAGE)/completions/trunkline.$$s; done
	$(STAGE)/here completion zsh > $(STAGE)/completions/_trunkline
	SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) $(STAGE)/here man $(STAGE)/man
	$(GO) -C deploy/packages run . -version '$(VERSION)' -date $(SOURCE_DATE_EPOCH)
	rm -r $(STAGE)

IMAGE     ?= trunkline:$(VERSION)
CONTEXT   ?= dist/image
CONTAINER ?= $(shell command -v docker || command -v podman || command -v buildah || echo docker)

.PHONY: image
image: ## container image IMAGE by CONTAINER (docker, podman or buildah), without a network
	rm -rf '$(CONTEXT)' && mkdir -p '$(CONTEXT)/data' '$(CONTEXT)/tmp'
	cp deploy/docker/Dockerfile '$(CONTEXT)/'
	GOOS=linux $(MAKE) --no-print-directory build BINARY='$(CONTEXT)/trunkline'
	'$(CONTAINER)' build $(if $(filter %docker,$(CONTAINER)),,--format docker) --network none --build-arg VERSION='$(VERSION)' --build-arg REVISION='$(REVISION)' -t '$(IMAGE)' '$(CONTEXT)'

.PHONY: clean
clean: ## remove what the targets above made
	rm -rf bin dist coverage.out coverage.html
