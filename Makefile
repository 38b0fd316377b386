# Everything a contributor runs. `make` alone prints this list; `.ci/run` is
# what decides whether a change may land.
SHELL := bash
.DEFAULT_GOAL := help

# The race detector needs a C compiler; without one the suite still runs.
CC_FOUND := $(shell command -v $${CC:-cc} || command -v gcc || command -v clang)
RACE     := $(if $(CC_FOUND),-race)
TOOL     := go tool -modfile=tools/go.mod
BUF      := tools/node_modules/.bin/buf
# Our own Go files: the generated ones are protoc-gen-go's business.
GO_FILES  = $(shell git ls-files --cached --others --exclude-standard '*.go' ':!*.pb.go')

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z\/-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## the rollcall binary, into bin/
	go build -o bin/rollcall ./cmd/rollcall

# The longest packages first, so that the others run beside them.
PACKAGES = ./test/e2e ./actors ./...

.PHONY: test
test: ## the whole suite, with the race detector where a C compiler is found
	@echo 'go test $(RACE) $(PACKAGES)$(if $(RACE),,  (no C compiler found: without the race detector))'
	@$(if $(RACE),CGO_ENABLED=1 )go test $(RACE) -timeout 25m $(PACKAGES)

.PHONY: race
race: ## the whole suite, and fail where the race detector cannot run
	CGO_ENABLED=1 go test -race -timeout 25m $(PACKAGES)

.PHONY: cases
cases: ## run the acceptance cases of test/cases.txt and say where each is proved
	go run ./test/cases/run

.PHONY: bench
bench: ## what the core costs, beside bare JetStream (BENCH='-w w1a,w5 -sync always' for a part)
	go run ./test/bench $(BENCH)

.PHONY: bench/go
bench/go: ## the benchmarks of single packages, once
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: fuzz
fuzz: ## every fuzz target for a few seconds (SECONDS_EACH=60 for longer)
	.ci/fuzz $(SECONDS_EACH)

.PHONY: fmt
fmt: ## format our Go files
	$(TOOL) gofumpt -w $(GO_FILES)

.PHONY: lint
lint: $(BUF) ## formatting, go vet, staticcheck, tidy modules, buf lint; changes nothing
	@unformatted=$$($(TOOL) gofumpt -l $(GO_FILES)); \
	  if [ -n "$$unformatted" ]; then printf 'not formatted (make fmt):\n%s\n' "$$unformatted"; exit 1; fi
	go vet ./...
	$(TOOL) staticcheck ./...
	go mod tidy -diff
	$(BUF) lint

.PHONY: proto
proto: $(BUF) ## generate Go from proto/
	$(BUF) lint
	$(BUF) generate

.PHONY: proto/check
proto/check: proto ## fail when the generated code is not what proto/ says
	@git diff --exit-code --stat -- proto && test -z "$$(git ls-files --others --exclude-standard -- proto)" \
	  || { echo 'the generated code is stale: commit what `make proto` makes'; exit 1; }

.PHONY: verify
verify: ## all that must hold before a change lands (.ci/run)
	.ci/run

.PHONY: chaos
chaos: ## break a cluster of real processes; ROLLCALL_SEED=n for one plan, ROLLCALL_SOAK=n for n long ones
	$(if $(RACE),CGO_ENABLED=1 )go test $(RACE) -v -count=1 -timeout 12h ./test/chaos

.PHONY: soak
soak: ## the suite twenty times, once with many more kills, crashes and plans of chaos, and five minutes a fuzz target
	CGO_ENABLED=1 go test -race -count=20 -timeout 4h ./...
	ROLLCALL_SOAK=1 CGO_ENABLED=1 go test -race -count=1 -timeout 12h ./...
	.ci/fuzz 300

.PHONY: mutants
mutants: ## seed each fault of test/mutants and see its named test turn red (ONLY=pattern for some)
	go run ./test/mutants -only '$(ONLY)'

.PHONY: vuln
vuln: ## known vulnerabilities in what we depend on (needs the network)
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

$(BUF): tools/package-lock.json tools/.npmrc
	npm ci --prefix tools
	@touch $@
