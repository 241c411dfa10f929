# make test    all tests with the race detector, beside a real three-server ensemble (PKG=./locks for some, SHORT=1 as CI runs them)
# make lint    formatting, vet and linters (RACE=1 shares what "make test" compiles)
# make vuln    known vulnerabilities in what is called; needs their database on the network
# make bench   the workloads, on one real server
# make compare  Lockstep and other libraries by turns, on real servers (ONLY=regexp for some rows, TURNS=n, JSON=1)
# make compare-holders  for how long two clients of each library believe to hold, under faults (ONLY, TURNS as above, FROZEN=1m)
# make fuzz    every fuzz target for FUZZTIME
# make sim     RUNS seeds of the simulation from SEED on (RECIPES=mutex,queue for some, JSON=1 for a summary in JSON)
# make ids     IDS ids of 20 processes whose clocks are wrong, that are killed and stand still: no two may be the same
# make sim-mutants  takes safeguards out, one at a time: the simulation must notice each
# make mutants  takes safeguards out, one at a time: a test of the package must fail (LIST=locks for some)
# make model   searches all states of the models of the lease, with Spin: some minutes
# make chaos   client processes on three servers, under bursts of faults drawn from SEED, for DURATION (JSON=1 as above)
# make soak    the pipeline example for DURATION, with workers killed all the while: memory and the like must stay flat
# make man     the manual pages, in bin/man: man -M bin/man lockstep
# make test-page  clicks through the web page in Chromium, on three real servers that are killed meanwhile: this test of
#                "make test" alone, a minute
# make build   compile everything
# make programs  test the programs with other libraries that docs/programs.md shows: some minutes
# make site    README and docs as static pages with a search, in bin/site, that work from a folder; needs Hugo
# make pictures  records example programs and "lockstep top" on a terminal again, and takes pictures of the web page, for
#                README and docs
# make release  the files of a release, in bin/dist, from a commit with the release's tags (docs/releasing.md)
# make api-changes  the exported names that have changed since the last release
# make tidy    each module's go.mod and go.sum, as if all were released

GO        ?= go
MODULES   := ./... ./bench/compare/... ./examples/... ./redislock/... ./registry/registrygrpc/...
# First the tests that wait most of the time, so that the others run meanwhile.
PKG       ?= ./internal/proof/faults ./internal/proof/chaos $(MODULES)
FUZZTIME  ?= 10s
SEED      ?= 1
RUNS      ?= 1000
RECIPES   ?=
LIST      ?=
SHORT     ?=
RACE      ?=
DURATION  ?= 1h
ONLY      ?=
TURNS     ?= 5
FROZEN    ?= 1m
IDS       ?= 1000000000
WORKLOADS ?= W0 W1 W2 W3 W4 W5 W6 W7 W8 M

GOLANGCI      := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
WITH_ENSEMBLE := $(GO) run ./internal/proof/ensemble/cmd/with-ensemble

.PHONY: all build tidy man test about-test lint vuln bench compare compare-holders fuzz sim ids sim-mutants mutants model chaos soak zookeeper test-tools site pictures release api-changes programs test-page
all: build lint test

build:
	$(GO) build $(MODULES)

programs:
	@scripts/install-compare
	cd docs/programs && GOWORK=off $(GO) vet . && GOWORK=off $(GO) test -count=1 -timeout 5m .

# Four packages at a time: two of them mostly wait, and several start ensembles of their own to break. Lint vets them.
# The race detector is a flag for all go commands, so that those in tests compile nothing twice.
test: about-test zookeeper test-tools
	GOFLAGS="$$($(GO) env GOFLAGS) -race" $(WITH_ENSEMBLE) -nofsync -- $(GO) run ./internal/testkit/progress -packages "$$($(GO) list $(PKG) | wc -l)" -- $(GO) test -vet=off -timeout 20m -p 4 $(if $(SHORT),-short) $(PKG)

about-test:
	@echo "All tests with the race detector, beside three real ZooKeeper servers: some 20 minutes on two cores (PKG=./locks for some)."
	@echo "As root on Debian or Ubuntu, apt-get installs what is missing of: ZooKeeper, Java, Apache Curator, kazoo, Redis, Hugo, Chromium, npm, Spin, gcc, Prometheus. Else the tests say what to install."

test-page: zookeeper test-tools
	$(GO) test -count=1 -race -timeout 10m -run '^TestThePageOnAnEnsemble$$' -v ./ui

lint:
	@unformatted="$$(gofmt -l .)"; if [ -n "$$unformatted" ]; then echo "run gofmt -w on:" $$unformatted; exit 1; fi
	$(GO) run $(if $(RACE),-exec "env 'GOFLAGS=$$($(GO) env GOFLAGS) -race'") $(GOLANGCI) run $(MODULES)

vuln:
	@GO="$(GO)" scripts/vulncheck $(MODULES)

bench: zookeeper
	$(GO) build -o bin/bench ./bench
	$(WITH_ENSEMBLE) -servers 1 -heap 512 -- sh -ec \
		'for w in $(WORKLOADS); do bin/bench -w $$w -zk $$LOCKSTEP_TEST_SERVERS; done'

compare: zookeeper test-tools
	@scripts/install-compare
	$(GO) build -o bin/compare ./bench/compare
	bin/compare -only '$(ONLY)' -turns $(TURNS) $(if $(JSON),-json) $(if $(ONLY),,-write docs)

compare-holders: zookeeper test-tools
	@scripts/install-compare
	$(GO) build -o bin/compare ./bench/compare
	bin/compare -holders -only '$(ONLY)' -turns $(TURNS) -frozen $(FROZEN) $(if $(ONLY),,-write docs)

fuzz:
	@set -e; for file in $$(grep -rl --include=*_test.go '^func Fuzz' .); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$file); do \
			echo "$$file $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "./$$(dirname $$file)"; \
		done; \
	done

sim:
	$(GO) test -c -o bin/sim ./internal/proof/sim
	cd internal/proof/sim && ../../../bin/sim -test.run '^TestSeeds$$' -seed $(SEED) -runs $(RUNS) -recipes "$(RECIPES)" $(if $(JSON),-json)

ids:
	$(GO) test -count=1 -run '^TestTenMillionIDs$$' -v -timeout 60m ./internal/proof/sim -ids $(IDS)

sim-mutants:
	$(GO) test -run TestEachMutantIsCaught -v -timeout 30m ./internal/proof/sim -mutants

mutants:
	$(GO) test -count=1 -run 'TestEachMutantIsCaught/$(LIST)' -v -timeout 120m ./internal/proof/mutants -mutants

model: test-tools
	$(GO) test -count=1 -v -timeout 60m ./internal/proof/model -all

chaos: zookeeper
	$(GO) test -c -o bin/chaos ./internal/proof/chaos
	cd internal/proof/chaos && ../../../bin/chaos -test.run '^TestChaos$$' -duration $(DURATION) -seed $(SEED) $(if $(JSON),-json)

soak: zookeeper
	$(GO) build -o bin/pipeline ./examples/pipeline
	$(GO) build -o bin/soak ./internal/proof/soak
	bin/soak -for $(DURATION)

# The root module's own checksum changes with each commit; users get it from the checksum database.
tidy:
	$(GO) mod tidy
	$(GO) build -o bin/with-modules ./internal/proof/modules/cmd/with-modules
	@set -e; root=$$PWD; for dir in bench/compare examples redislock registry/registrygrpc; do \
		(cd $$dir && $$root/bin/with-modules -checkout $$root -- $(GO) mod tidy && sed -i '/lockstep-go\/lockstep/d' go.sum); \
	done

man:
	$(GO) run ./cmd/lockstep man bin/man/man1

site:
	hugo --noBuildLock --source site --destination ../bin/site --cleanDestinationDir
	@echo "open bin/site/index.html"

pictures:
	@scripts/pictures
	@scripts/page-pictures

release:
	release/build

api-changes:
	release/api-changes

zookeeper:
	@scripts/install-zookeeper

test-tools:
	@scripts/install-test-tools
