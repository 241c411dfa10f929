# make test    all tests with the race detector, beside a real three-server ensemble (PKG=./locks for some)
# make lint    formatting, vet and linters
# make bench   the workloads, on one real server
# make fuzz    every fuzz target for FUZZTIME
# make build   compile everything

GO        ?= go
PKG       ?= ./...
FUZZTIME  ?= 10s
WORKLOADS ?= W0 W1 W2 W3 W4 W5 W7 W8 M

GOLANGCI      := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
WITH_ENSEMBLE := $(GO) run ./internal/ensemble/cmd/with-ensemble

.PHONY: all build test lint bench fuzz zookeeper peers
all: build lint test

build:
	$(GO) build ./...

# Two packages at a time: several of them start ensembles of their own to break.
test: zookeeper peers
	$(WITH_ENSEMBLE) -nofsync -- $(GO) test -race -timeout 15m -p 2 $(PKG)

lint:
	@unformatted="$$(gofmt -l .)"; if [ -n "$$unformatted" ]; then echo "run gofmt -w on:" $$unformatted; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(GOLANGCI) run ./...

bench: zookeeper
	$(GO) build -o bin/bench ./bench
	$(WITH_ENSEMBLE) -servers 1 -heap 512 -- sh -ec \
		'for w in $(WORKLOADS); do bin/bench -w $$w -zk $$LOCKSTEP_TEST_SERVERS; done'

fuzz:
	@set -e; for file in $$(grep -rl --include=*_test.go '^func Fuzz' .); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$file); do \
			echo "$$file $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "./$$(dirname $$file)"; \
		done; \
	done

zookeeper:
	@scripts/install-zookeeper

peers:
	@scripts/install-peers
