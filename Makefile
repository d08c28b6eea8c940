# Osler: `make ask` answers a question from a clean clone, `make test` proves the rest.
PYTHON ?= python3
V := .venv
BIN := $(V)/bin
HOME_DIR ?= .osler
Q ?= A patient who takes warfarin is started on amiodarone. What happens to the INR?
# Empty: as plain `osler ask`. Else tc-rag or any of docs/guide/baselines.md.
STRATEGY ?=
# Processes that tests run in; one a core.
JOBS ?= auto
OSLER := OSLER__HOME=$(HOME_DIR) $(BIN)/osler
PYTEST := $(BIN)/python -m pytest
export PYTHON

.PHONY: ask models test test-extra test-libraries test-kits test-servers lint-deploy check check-types check-rules house mutants laws docs lock bench scoreboard-small fuzz page test-page screenshots coverage release-check clean

ask: models
	@$(OSLER) kb build --sample >/dev/null
	@test -e $(HOME_DIR)/kb/graph.sqlite || $(OSLER) kb graph add --sample >/dev/null
	@$(OSLER) ask $(if $(STRATEGY),--strategy $(STRATEGY)) "$(Q)"

models: $(V)/core
	@$(OSLER) download-models >/dev/null

test: $(V)/dev models
	$(PYTEST) -n $(JOBS) --dist worksteal

test-extra: $(V)/extra models
	$(PYTEST) -m "torch or ray"

## Model servers that nobody here wrote. Where one cannot be built its tests say so.
test-servers: $(V)/extra $(V)/servers/litellm/ready models
	-$(MAKE) --no-print-directory $(V)/servers/llama-cpp-python/ready
	OSLER_SERVERS=$(V)/servers $(PYTEST) -n 0 -p no:cacheprovider -rs --durations=0 tests/servers

## The contracts of other people's libraries, each the real one.
test-libraries: $(V)/libraries/ready test-servers
	MONTY_BIN=$(BIN)/monty $(V)/libraries/bin/python -m pytest -p no:cacheprovider -p no:xdist tests/unit/client tests/unit/serve/test_openai_door.py tests/unit/serve/test_mcp_*.py

## What others judge us by (docs/conformance.md). MCP's suite wants Node 22.
test-kits: $(V)/libraries/ready
	npm ci --no-audit --no-fund --prefix tests/conformance/kits
	$(V)/libraries/bin/python -m pytest -p no:cacheprovider -p no:xdist -rs tests/conformance/test_other_kits.py tests/conformance/test_smart_client_suite.py tests/house/test_supply_chain.py

lint-deploy: $(V)/linters/ready
	scripts/lint_deploy.sh

## What every commit passes.
check: $(V)/dev
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target check-types check-rules

check-types: $(V)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check-rules: $(V)/dev
	HYPOTHESIS_PROFILE=quick $(PYTEST) -n $(JOBS) --dist worksteal tests/house tests/laws tests/oracles

house:
	@$(PYTHON) scripts/house.py

## N mutants of ROOMS (methods, answer, evaluate/metrics; or all), drawn by SEED.
mutants: $(V)/mutmut
	$(BIN)/python scripts/mutants.py -n $(or $(N),300) --seed $(or $(SEED),1) $(ROOMS)

## TC-RAG's laws and its Turing simulation at 2,000 examples each.
laws: $(V)/dev
	HYPOTHESIS_PROFILE=laws $(PYTEST) $(addsuffix _laws.py,$(addprefix tests/laws/test_,stack machine action turing)) tests/oracles/test_named_machines.py

docs: $(V)/docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(V)/dev models
	$(BIN)/python benchmarks/sample_questions.py

scoreboard-small: $(V)/dev
	scripts/scoreboard_small.sh $(HOME_DIR)/scoreboard

page: $(V)/dev
	@$(BIN)/python scripts/page_sources.py
	cd web && npm ci --no-audit --no-fund && npm test && npm run build

test-page: $(V)/dev
	@scripts/test_page.sh

screenshots: page models
	$(BIN)/python benchmarks/screenshots.py screenshots

fuzz: $(V)/dev
	$(BIN)/python benchmarks/fuzz_api.py --cases 5000

coverage: $(V)/dev models
	scripts/coverage.sh

## TAG=v1.2.3 must fit the version; DIST=dist keeps the files.
release-check: $(V)/dev
	$(BIN)/python scripts/release_check.py $(if $(TAG),--tag $(TAG)) $(if $(DIST),--keep $(DIST))

lock:
	scripts/lock.sh

clean:
	rm -rf $(V) $(HOME_DIR) site

# The environments; scripts/environment.sh has what is in each.
$(V)/core: requirements.lock packages/osler/pyproject.toml
$(V)/dev: requirements-dev.lock packages/osler-lab/pyproject.toml packages/osler-serve/pyproject.toml $(V)/core
$(V)/extra: requirements-extra.lock $(V)/dev
$(V)/docs: requirements-docs.lock $(V)/dev
$(V)/mutmut: requirements-mutants.lock $(V)/dev
$(V)/libraries/ready: requirements-libraries.lock $(V)/dev
$(V)/linters/ready: requirements-linters.lock
$(addprefix $(V)/,core dev extra docs mutmut libraries/ready linters/ready):
	@scripts/environment.sh $(@:$(V)/%=%)
$(V)/servers/%/ready: requirements-%.lock
	@scripts/environment.sh $(@:$(V)/%=%)
