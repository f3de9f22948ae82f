# ARGS go to the command of the target: make demo ARGS=--exit, make test ARGS='-run Gang'.
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help build image generate verify test test-short test-long fuzz soak vuln demo bench clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build the scheduler and the kubectl plugin into bin/.
	go build -trimpath -o bin/batch-scheduler ./cmd/batch-scheduler
	go build -trimpath -o bin/kubectl-batch ./cmd/kubectl-batch

image: ## Build the container image for amd64 and arm64 as _artifacts/image.tar; PUSH=REFERENCE also pushes it.
	go run ./hack/image $(if $(PUSH),-push $(PUSH))

generate: ## Write what is generated: clients and CRDs from the types, references in docs/, and what the chart shares with config/.
	hack/generate.sh

verify: ## Fail if generated files, formatting, go.mod or the architecture are not in order.
	hack/verify.sh

test: ## Vet, and run all tests with the race detector, the ones on a real API server included.
	hack/test.sh $(ARGS)

test-short: ## Run the tests that need no API server.
	go test -short $(ARGS) ./...

test-long: ## Run the tests that draw random cases with many more of them, which takes about half an hour.
	hack/test-long.sh $(ARGS)

fuzz: ## Fuzz each target for 30 seconds; FUZZTIME=10m for longer, ARGS=FuzzModel for one.
	hack/fuzz.sh $(ARGS)

vuln: ## Look for known vulnerabilities in dependencies; says so and passes where the database cannot be reached.
	hack/vuln.sh $(ARGS)

soak: ## Let a random course of events run against the scheduler for MINUTES=10; SEED=7 repeats one, ARGS=-h tells more.
	go run ./test/soak -minutes $(or $(MINUTES),10) $(if $(SEED),-seed $(SEED)) $(ARGS)

demo: ## Show the scheduler at work on a local cluster. With ARGS=--exit it ends by itself.
	@echo "Building the demo. The first time all is compiled, which takes several minutes."
	@go run ./cmd/demo $(ARGS)

bench: ## Measure how fast decisions are made, and how it goes on a real API server; fails beyond the bounds.
	hack/bench.sh $(ARGS)

clean: ## Remove what was built.
	rm -rf bin _artifacts
