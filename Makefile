# Weir: `make demo` runs it, `make test` proves it. Both install what they need into .venv.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
PORT ?= 8000
SPEED ?=
TRACE ?=
NODES ?=
FROM ?=
CLUSTER ?=
VALUES ?=
FOLDER ?=
SUITE ?= sid
FULL ?=
TESTS ?= tests
SEED ?=
FAULTS ?=
CLUSTER_TESTS ?= $(addprefix tests/scheduling/cluster/,contract kubelets real) \
	$(addprefix tests/scheduling/cluster/test_,lease.py mirror.py) \
	$(addprefix tests/scheduling/services/test_,acts.py checkpoints.py checkup.py choosy_pods.py clusters.py cycle.py \
		cycle_faults.py division_rows.py dra.py ends.py faults.py grown.py kinds.py least_privilege.py live_loop.py \
		nonsense.py odd.py pod_groups.py real.py runtimes.py stages.py two_clusters.py unplaced.py workloads.py) \
	$(addprefix tests/scheduling/services/,benches guardrails) tests/scheduling/test_end_to_end.py \
	tests/security/cluster tests/e2e/test_first_run.py
BIN := .venv/bin
# One thread per numeric library: two cores are shared by portal, worker and cluster.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# Random examples of one commit are the same in every run; `make test-nightly` draws others.
export PYTHONHASHSEED := 0
# `newest` or `oldest`: the Kubernetes that tests and `make cluster` build.
export WEIR_KUBERNETES ?= newest

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 16

setup: .venv/.compiled .venv/bin/weir ## Make .venv with everything the demo needs, and the command `weir`

.venv/bin/python:
	@docker/install-python.sh "$(PYTHON)" .venv

.venv/.runtime: requirements.txt | .venv/bin/python
	@echo "Weir: installing its parts into .venv"
	@$(BIN)/python docker/install_parts.py requirements.txt
	@touch $@

.venv/bin/weir: pyproject.toml | .venv/.runtime
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

.venv/.compiled: .venv/.runtime $(shell find scheduling/engine -name "*.py")
	@echo "Weir: compiling the engine"
	@$(BIN)/python -m scheduling.engine
	@touch $@

.venv/.dev: requirements-dev.txt .venv/.compiled
	@echo "Weir: installing the parts of tests and checks"
	@$(BIN)/python docker/install_parts.py requirements-dev.txt
	@touch $@

demo: setup ## The portal over a cluster: PORT=, SPEED=, TRACE=, NODES=, FROM=, CLUSTER=real|context:NAME
	@$(BIN)/python manage.py demo --port $(PORT) \
		$(if $(SPEED),--speed $(SPEED)) $(if $(TRACE),--trace "$(TRACE)") $(if $(NODES),--nodes $(NODES)) \
		$(if $(FROM),--from "$(FROM)") \
		$(if $(CLUSTER),--cluster $(CLUSTER))

demo-clean: ## Forget the demo's data
	rm -rf var/demo*

serve: setup ## The portal for an organisation of your own: PORT=
	@$(BIN)/python manage.py serve --port $(PORT)

cluster: .venv/.runtime ## A Kubernetes control plane on loopback, with simulated nodes
	@$(BIN)/python -m workshop.testbed.control_plane up var/cluster

cluster-down: .venv/.runtime ## End it and forget what it stored
	@$(BIN)/python -m workshop.testbed.control_plane down var/cluster

browser: | .venv/bin/python
	@docker/install-browser.sh $(BIN)/python

test: .venv/.dev browser ## Every test; TESTS=path narrows, SEED=number shuffles
	$(BIN)/python -m pytest -n 3 --dist worksteal $(if $(SEED),--random-order-seed=$(SEED)) $(TESTS)

costs: .venv/.dev ## Count anew what cycles, background tasks and pages ask for: tests/costs/ledger.json
	WEIR_WRITE_COSTS=1 $(BIN)/python -m pytest -n 0 tests/costs

control-plane: .venv/.dev
	@$(BIN)/python -m workshop.testbed.control_plane build

test-cluster: .venv/.dev browser control-plane ## Contract, enforcement and faults on a real control plane, the first run in a browser
	@# Each of the two processes starts a control plane of its own. In this order: what a suite leaves there, such as
	@# kinds of operators, later ones know of.
	WEIR_TEST_CLUSTER=real $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(CLUSTER_TESTS)

evidence: setup ## Measure what docs/evidence.md claims: BENCHES= (also those on a control plane)
	@$(BIN)/python manage.py evidence $(BENCHES)

services:
	@docker/install-services.sh

test-services: .venv/.dev services ## On PostgreSQL and Redis: suites, then separate processes, each killed in turn
	$(BIN)/python -m tests.parts

.venv-load: requirements-load.txt
	@echo "Weir: installing what the load test needs, apart from it"
	@"$(PYTHON)" -m venv $@ && $@/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-load.txt
	@touch $@

load: setup services .venv-load ## 500 people with personas at a large organisation: PEOPLE=, MINUTES=
	@$(BIN)/python manage.py load $(if $(PEOPLE),--people $(PEOPLE)) $(if $(MINUTES),--minutes $(MINUTES))

test-deploy: .venv/.dev services control-plane ## The chart rendered, validated and applied to a control plane, its rules tried, an installation looked at
	WEIR_TEST_DEPLOY=1 $(BIN)/python -m pytest -n 2 --dist loadfile tests/deploy

manifests: ## The chart as plain manifests and a Kustomize base: VALUES=file, FOLDER=
	@deploy/tools/manifests.sh "$(VALUES)" "$(or $(FOLDER),var/manifests)"

test-nightly: export PYTHONHASHSEED := random
test-nightly: .venv/.dev services ## The engine's laws over 2,000 random organisations each, every hostile text by everybody everywhere
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -n 2 --dist worksteal tests/scheduling/engine/test_laws.py \
		tests/walk tests/security/test_hostile_input.py tests/security/test_extreme_numbers.py \
		tests/portal/api/test_conformance.py tests/scheduling/services/test_settling.py
	@# Without the compiler, where an index below zero raises.
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 tests/scheduling/engine
	@# The image built twice, and PostgreSQL away for ten minutes.
	HYPOTHESIS_PROFILE=nightly WEIR_TEST_DEPLOY=1 $(BIN)/python -m pytest -n 0 tests/deploy/test_reproducible.py
	HYPOTHESIS_PROFILE=nightly WEIR_TEST_PARTS=1 $(BIN)/python -m pytest -n 0 tests/parts/test_whole.py -k "person_signs or ten-minutes"
	@# The oldest Kubernetes that Weir is tested with.
	HYPOTHESIS_PROFILE=nightly $(MAKE) test-cluster WEIR_KUBERNETES=oldest
	@# Both commands of README on each Debian, every test included, in an order of the night.
	for suite in bookworm trixie sid; do "$(PYTHON)" -m tests.fresh $$suite --full --seed $$RANDOM || exit 1; done
	@# Laws 4 and 8 in 100,000 worlds, others each night: what acts without a stated reason may not grow.
	$(BIN)/python -m tests.scheduling.engine.second_plans --worlds 100000 --seed $$(date +%y%j00000) --most 1

test-fresh: ## README's commands from a bare clone in a bare Debian: SUITE=bookworm|trixie|sid, FULL=1 for every test, SEED=
	@"$(PYTHON)" -m tests.fresh $(SUITE) $(if $(FULL),--full) $(if $(SEED),--seed $(SEED))

mutants: .venv/.dev browser ## Plant known faults, one at a time: the tests must notice each; FAULTS=words narrows
	$(BIN)/python -m tests.mutants $(FAULTS)

check: .venv/.dev ## Format, lint, types, contracts, templates, dependencies
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy scheduling portal weir workshop
	$(BIN)/lint-imports
	$(BIN)/djlint --quiet --lint templates
	$(BIN)/hadolint docker/Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker/compose.yaml
	$(BIN)/python docker/audit_dependencies.py
	$(BIN)/python manage.py check --fail-level WARNING
	$(BIN)/python manage.py makemigrations --check --dry-run

format: .venv/.dev ## Rewrite in the one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: .venv/.dev ## Pin requirements anew from requirements*.in
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header \
		--no-emit-index-url --no-emit-find-links requirements.in -o requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header \
		--no-emit-index-url --no-emit-find-links requirements-dev.in -o requirements-dev.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header \
		--no-emit-index-url --no-emit-find-links requirements-load.in -o requirements-load.txt

.PHONY: help setup demo demo-clean serve cluster cluster-down control-plane browser evidence services test test-cluster test-deploy manifests test-services test-nightly test-fresh mutants load check format lock
