# ARGS go to the command of the target: make demo ARGS=--exit, make test ARGS='-run Gang'.
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help build image docker-build install uninstall deploy undeploy generate verify lint presubmit test test-short \
	test-long fuzz soak vuln demo bench clean

# The image that docker-build makes.
IMAGE ?= ghcr.io/batch-scheduler/batch-scheduler:latest

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build the scheduler and the kubectl plugin into bin/.
	hack/build.sh -o bin/batch-scheduler ./cmd/batch-scheduler
	hack/build.sh -o bin/kubectl-batch ./cmd/kubectl-batch

image: ## Build the container image for amd64 and arm64 as _artifacts/image.tar; PUSH=REFERENCE also pushes it.
	go run ./hack/image $(if $(PUSH),-push $(PUSH))

docker-build: ## Build the same binary into an image with a container engine; IMAGE=NAME:TAG, DOCKER=podman.
	$(or $(DOCKER),docker) build --build-arg VERSION="$$(hack/version.sh)" -t $(IMAGE) .

install: ## Install the CustomResourceDefinitions into the current cluster of kubectl.
	kubectl apply -k config/crd

uninstall: ## Delete the CustomResourceDefinitions, and with them every PodGroup and Queue.
	kubectl delete --ignore-not-found -k config/crd

deploy: ## Deploy the scheduler into the current cluster of kubectl; "make install" comes first.
	kubectl apply -k config/default

undeploy: ## Delete what "make deploy" has created.
	kubectl delete --ignore-not-found -k config/default

generate: ## Write what is generated: clients and CRDs from the types, references in docs/, and what the chart shares with config/.
	hack/generate.sh

verify: ## Fail if generated files, formatting, go.mod or the architecture are not in order.
	hack/verify.sh

lint: ## Run golangci-lint with .golangci.yaml; the first time it is compiled, which takes minutes.
	hack/lint.sh $(ARGS)

presubmit: verify lint test ## Run what a change has to pass.

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
	@hack/build.sh -o bin/demo ./cmd/demo
	@exec bin/demo $(ARGS)

bench: ## Measure how fast decisions are made, and how it goes on a real API server; fails beyond the bounds.
	hack/bench.sh $(ARGS)

clean: ## Remove what was built.
	rm -rf bin _artifacts
