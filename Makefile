# `make` lists the targets. Plain `go build ./...` and `go test ./...` work too; what
# they lack in a fresh clone is the worker's engine, which `make deps` brings.

# Tools, pinned. They are built into .cache/tools, once for each version of Go.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

GO         ?= go
TIME       ?= 10s
CHECK_TIME ?= 3s
BENCH      ?= .

SHELL := /bin/sh
.SHELLFLAGS := -eu -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# Where the kernel starts a worker: limits/lockdown/entry_linux_amd64.s. Without it all works, a few milliseconds later.
ENTRY := github.com/openclaw/codemode-supervisor/cmd/qjs-worker=-E=github.com/openclaw/codemode-supervisor/limits/lockdown.entry

# The stories over the two binaries measure deadlines, so they run after the other tests, not beside them.
E2E  := ./test/e2e/...
UNIT  = $$($(GO) list ./... | grep -v '/test/e2e')

SHELL_SCRIPTS := .ci/run scripts/*.sh cmd/qjs-worker/internal/assets/fetch.sh

TOOLS = .cache/tools/$$($(GO) env GOVERSION)

# $(call need,PROGRAM,WHAT FOR) ends the recipe with one line if the program is missing.
need = command -v $(1) >/dev/null 2>&1 || { echo "make: $(1) is missing; it is needed for $(2)" >&2; exit 1; }

# $(call tool,PATH@VERSION) installs a pinned tool, unless it is there, and runs it with what follows.
tool = dir="$(TOOLS)/$(notdir $(1))"; name="$(notdir $(firstword $(subst @, ,$(1))))"; \
	[ -x "$$dir/$$name" ] || GOBIN="$$(pwd)/$$dir" $(GO) install $(1); "$$dir/$$name"

##@ Everyday

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: deps
deps: ## Fetch Go modules and the engine, make the worker's start images
	@$(call need,$(GO),everything; go.mod names the version)
	@$(call need,node,the npm client and the baseline of make bench)
	@$(call need,npm,fetching the engine)
	@[ .cache/stamps/modules -nt go.sum ] && [ .cache/stamps/modules -nt go.mod ] || { \
		$(GO) mod download && mkdir -p .cache/stamps && touch .cache/stamps/modules; }
	@cmd/qjs-worker/internal/assets/fetch.sh
	@scripts/typescript.sh
	@scripts/images.sh

.PHONY: build
build: deps ## Build both binaries, static, into bin/
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags=$(ENTRY) -o bin/ ./cmd/supervisor ./cmd/qjs-worker

.PHONY: run
run: build ## Run the example cell with its tools
	bin/supervisor run --tools examples/hello/tools.json5 examples/hello/cell.ts

.PHONY: fmt
fmt: ## Format the Go code
	gofmt -w .

.PHONY: clean
clean: ## Remove what was built, fetched and generated
	rm -rf bin .cache bench/node-worker/node_modules
	find cmd/qjs-worker/internal/assets/dist -mindepth 1 ! -name README.md ! -name dist.go -delete

##@ Tests

.PHONY: test
test: build ## Run all tests
	$(GO) test -timeout 5m $(UNIT)
	$(GO) test -timeout 10m -count=1 $(E2E)

.PHONY: race
race: race-unit ## Run all tests under the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout 15m -count=1 $(E2E)

.PHONY: race-unit
race-unit: build
	@$(call need,gcc,the race detector)
	CGO_ENABLED=1 $(GO) test -race -timeout 10m $(UNIT)

.PHONY: e2e
e2e: build ## Run the stories over the two binaries
	$(GO) test -timeout 10m -count=1 $(E2E)

.PHONY: e2e-vm
e2e-vm: build ## Boot a small VM with cgroup v2 only and test the isolation in it
	@scripts/e2e-vm.sh

.PHONY: fuzz
fuzz: deps ## Run every fuzz test, TIME=10s each
	scripts/fuzz.sh $(TIME)

.PHONY: cover
cover: build ## Run all tests with coverage, into .cache/cover.html
	$(GO) test -timeout 15m -coverpkg=./... -coverprofile=.cache/cover.txt ./...
	$(GO) tool cover -html=.cache/cover.txt -o .cache/cover.html
	$(GO) tool cover -func=.cache/cover.txt | tail -n 1

.PHONY: bench
bench: build bench/node-worker/node_modules/.installed ## Run the benchmarks and the Node baseline, BENCH=pattern
	@scripts/bench.sh '$(BENCH)'

##@ Checks

.PHONY: check
check: ## All that CI runs: lint, cross-builds, all tests, race, short fuzz
	@scripts/tree.sh save
	@$(MAKE) lint
	@$(MAKE) cross
	@$(MAKE) race-unit
	@$(MAKE) fuzz TIME=$(CHECK_TIME)
	@$(MAKE) test
	@$(MAKE) e2e-vm
	@scripts/tree.sh compare

.PHONY: lint
lint: deps ## Format, vet, staticcheck, go.mod and notices up to date
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; } >&2
	$(GO) vet ./...
	@echo staticcheck ./...
	@$(call tool,$(STATICCHECK)) ./...
	$(GO) mod tidy -diff
	scripts/notices.sh --check
	@if command -v shellcheck >/dev/null 2>&1; then set -x; shellcheck $(SHELL_SCRIPTS); \
		else echo "lint: shellcheck is not installed: shell scripts were not checked"; fi

.PHONY: cross
cross: deps ## Build for linux/arm64 and darwin/arm64, tests included
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GO) build ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) build ./...

.PHONY: notices
notices: deps ## Write THIRD_PARTY_NOTICES.md anew
	scripts/notices.sh

# Not part of check: it needs the Go vulnerability database, which closed networks (our CI's too) do not reach.
.PHONY: vuln
vuln: deps ## Known vulnerabilities of our dependencies (needs the network's vulnerability database)
	@echo govulncheck ./...
	@$(call tool,$(GOVULNCHECK)) ./...

# No lock file: one exact dependency, without dependencies of its own.
bench/node-worker/node_modules/.installed: bench/node-worker/package.json
	@$(call need,npm,the baseline of make bench)
	cd bench/node-worker && npm install --no-package-lock --no-audit --no-fund --ignore-scripts --silent
	@touch $@
