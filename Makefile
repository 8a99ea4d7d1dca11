# Everything a person or CI does with this repository. `make` prints the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help

export CGO_ENABLED = 0

GO_MINIMUM   := $(shell sed -n 's/^go //p' go.mod)
# Tools run at a pinned version from their own module graph, so that none of
# their dependencies enters go.mod.
GOLANGCI     := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOFUMPT      := go run mvdan.cc/gofumpt@v0.12.0
DEMO_MODULE  := github.com/google/uuid@v1.6.0
DEBIAN       := git openssh-client postgresql chromium

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## check the toolchain, fetch modules, install what tests need (apt-get, when root)
	@.ci/setup $(GO_MINIMUM) $(DEBIAN)

.PHONY: build
build: ## build bin/proveto, static
	go build -trimpath -o bin/proveto ./cmd/proveto

.PHONY: demo
demo: build ## fetch google/uuid, copy it to a temporary directory, prove it
	@set -euo pipefail; \
	src=$$(go mod download -json $(DEMO_MODULE) | sed -n 's/^\t"Dir": "\(.*\)",$$/\1/p'); \
	dir=$$(mktemp -d -t proveto-demo.XXXXXX)/uuid; \
	cp -r "$$src" "$$dir"; chmod -R u+w "$$dir"; \
	echo "proveto start $$dir" >&2; \
	bin/proveto start "$$dir"

.PHONY: vet
vet: ## go vet
	go vet ./...

.PHONY: lint
lint: ## golangci-lint with the rules of .golangci.yml, formatting included
	$(GOLANGCI) run ./...

.PHONY: format
format: ## rewrite the Go files the way lint wants them
	$(GOFUMPT) -w $$(git ls-files '*.go' ':!:*testdata*')

.PHONY: test
test: vet lint ## the fast suite: vet, lint, every test, then the gate over the change
	go test -timeout=30m ./...
	@$(MAKE) --no-print-directory gate

.PHONY: test-all
test-all: vet lint ## the long suites too: real packages, every attack at every level, prove-self
	PROVETO_LONG=1 go test -timeout=120m ./...
	@$(MAKE) --no-print-directory prove-self

.PHONY: gate
gate: build ## judge by bin/proveto what changed here; BASE=REF says since when
	@.ci/gate change $(BASE)

.PHONY: prove-self
prove-self: build ## judge by bin/proveto all of evidence, ledger and prove
	@.ci/gate whole

.PHONY: bench
bench: ## build the measuring programs into bin/; bench/README.md says how to run them
	go build -trimpath -o bin/ ./bench/paired ./bench/flow ./bench/groundtruth ./bench/gremlins ./bench/table ./bench/compare

.PHONY: clean
clean: ## remove what was built
	@[ ! -d .gate ] || chmod -R u+w .gate
	rm -rf bin dist .gate
