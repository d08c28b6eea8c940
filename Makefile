# Osler: `make ask` answers a question from a clean clone, `make test` proves the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HOME_DIR ?= .osler
Q ?= A patient who takes warfarin is started on amiodarone. What happens to the INR?
# Empty: one search and quotes, as plain `osler ask`.
STRATEGY ?=
# Processes that tests run in; one a core.
JOBS ?= auto
# The extras that the tests have beside the core; the heavy ones are in requirements-extra.txt.
LIGHT := pdf parquet xlsx fast edge qdrant graph math plot export serve
OWN := osler osler-lab osler-serve
DEPLOY := packages/osler-serve/src/osler_serve/deploy
OSLER := OSLER__HOME=$(HOME_DIR) $(BIN)/osler

.PHONY: ask house test test-extra test-libraries test-servers lint-deploy check check-types check-rules mutants laws docs lock bench scoreboard-small fuzz page test-page screenshots coverage release-check clean

$(VENV)/core: requirements.lock packages/osler/pyproject.toml
	@echo "installing into $(VENV) (once, about half a minute)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable packages/osler
	@touch $@

$(VENV)/dev: $(VENV)/core requirements-dev.lock packages/osler-lab/pyproject.toml packages/osler-serve/pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable packages/osler-lab --editable packages/osler-serve
	@touch $@

## Answers Q from the sample knowledge base as plain `osler ask` does, or with STRATEGY (tc-rag, kag-thinker, omni-rag, or any of docs/guide/baselines.md).
ask: $(VENV)/core
	@$(OSLER) download-models >/dev/null
	@$(OSLER) kb build --sample >/dev/null
	@$(OSLER) ask $(if $(STRATEGY),--strategy $(STRATEGY)) "$(Q)"

## Everything, with the real engine and encoder.
test: $(VENV)/dev
	@$(OSLER) download-models >/dev/null
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

$(VENV)/extra: $(VENV)/dev requirements-extra.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-extra.lock
	@touch $@

## The tests that need the extras train (torch, transformers) and ray.
test-extra: $(VENV)/extra
	@$(OSLER) download-models >/dev/null
	$(BIN)/python -m pytest -m "torch or ray"

# On top of the tests' environment: `addsitedir` reads that one's .pth files too.
$(VENV)/libraries/ready: $(VENV)/dev requirements-libraries.lock
	$(PYTHON) -m venv $(VENV)/libraries
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir({!r})".format(sysconfig.get_path("purelib")))' \
	  > "$$($(VENV)/libraries/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tests.pth"
	$(VENV)/libraries/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-libraries.lock
	@touch $@

$(VENV)/servers/%/ready: requirements-%.lock
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

# llama-cpp-python is built from source (a C++ compiler, minutes); where that fails its tests say that it is not there.
# Not for this processor: a virtual machine may show AMX and forbid it, and the server dies at its first prompt.
$(VENV)/servers/llama-cpp-python/ready: export CMAKE_ARGS = -DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF

## Model servers that nobody here wrote: llama.cpp's, `transformers serve`, LiteLLM's proxy, llama-cpp-python's.
test-servers: $(VENV)/extra $(VENV)/servers/litellm/ready
	@$(OSLER) download-models >/dev/null
	-$(MAKE) --no-print-directory $(VENV)/servers/llama-cpp-python/ready
	OSLER_SERVERS=$(VENV)/servers $(BIN)/python -m pytest -n 0 -p no:cacheprovider -rs --durations=0 tests/servers

## The contracts of openai, mcp, langchain-core, llama-index-core, haystack and IPython, each the real one, in an environment of its own.
test-libraries: $(VENV)/libraries/ready test-servers
	@$(VENV)/libraries/bin/python -W ignore -c "import openai, mcp, langchain_core, llama_index.core, haystack"
	MONTY_BIN=$(BIN)/monty $(VENV)/libraries/bin/python -m pytest -p no:cacheprovider -p no:xdist tests/unit/client tests/unit/cli/test_notebook.py tests/unit/serve/test_openai_door.py tests/unit/serve/test_mcp_door.py tests/unit/serve/test_mcp_tasks.py

$(VENV)/linters/ready: requirements-linters.lock
	$(PYTHON) -m venv $(VENV)/linters
	$(VENV)/linters/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-linters.lock
	@touch $@

## The files of `osler deploy`, by the linters of each kind; systemd's own where it is installed.
lint-deploy: $(VENV)/linters/ready
	$(VENV)/linters/bin/hadolint $(DEPLOY)/Containerfile
	$(VENV)/linters/bin/check-jsonschema --builtin-schema vendor.compose-spec $(DEPLOY)/compose.yaml
	$(VENV)/linters/bin/kubernetes-validate --strict $(DEPLOY)/kubernetes.yaml
	if command -v systemd-analyze >/dev/null; then systemd-analyze security --offline=true --threshold=50 $(DEPLOY)/osler.service; fi

## What every commit passes: format, lint, types, house rules, laws at a small budget. Types and tests side by side.
check: $(VENV)/dev
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target check-types check-rules

check-types: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check-rules: $(VENV)/dev
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests/house tests/laws tests/oracles

## How the package measures: sizes, names, comments, import circles, lost references.
house:
	@$(PYTHON) scripts/house.py

$(VENV)/mutmut: $(VENV)/dev requirements-mutants.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-mutants.lock
	@touch $@

## Faults that the tests would see: N mutants of ROOMS (methods, answer, evaluate/metrics; all of them by default), drawn by SEED.
mutants: $(VENV)/mutmut
	$(BIN)/python scripts/mutants.py -n $(or $(N),300) --seed $(or $(SEED),1) $(ROOMS)

## TC-RAG's laws and its Turing simulation at 2,000 examples each.
laws: $(VENV)/dev
	HYPOTHESIS_PROFILE=laws $(BIN)/python -m pytest tests/laws/test_stack_laws.py \
	  tests/laws/test_machine_laws.py tests/laws/test_action_laws.py \
	  tests/laws/test_turing_laws.py tests/oracles/test_named_machines.py

$(VENV)/docs: $(VENV)/dev requirements-docs.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	@touch $@

## The documentation site, into site/. A broken link, a name that is gone or any other warning fails it.
docs: $(VENV)/docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "site/index.html"

## Accuracy and retrieval on the 40 sample questions, and the speed of a search.
bench: $(VENV)/dev
	@$(OSLER) download-models >/dev/null
	$(BIN)/python benchmarks/sample_questions.py

## The small scoreboard on the sample base, in a home of its own; fails where a row leaves its published interval.
scoreboard-small: SCORED := OSLER__HOME=$(HOME_DIR)/scoreboard $(BIN)/osler
scoreboard-small: $(VENV)/dev
	@$(SCORED) download-models >/dev/null
	@$(SCORED) kb build --sample >/dev/null
	@$(SCORED) kb graph add --sample >/dev/null
	$(SCORED) scoreboard --plan small --log-dir $(HOME_DIR)/scoreboard/log --out $(HOME_DIR)/scoreboard --against benchmarks/scoreboard/small.csv

## Builds the page into the package (needs Node 20 or newer; installing Osler does not).
page: $(VENV)/dev
	@$(BIN)/python scripts/page_sources.py
	cd web && npm ci --no-audit --no-fund && npm test && npm run build

## The page in the machine's own Chromium. Where Node or Chromium is not there it says so and ends.
test-page: $(VENV)/dev
	@if ! command -v npm >/dev/null; then echo "not tried: the page needs Node 20 or newer"; \
	elif ! command -v chromium >/dev/null; then echo "not tried: there is no chromium"; \
	else $(MAKE) page && $(BIN)/python -m pytest -rs tests/journeys/page tests/unit/serve/test_page_files.py; fi

## Pictures of every page, in English and in Chinese, into the folder screenshots.
screenshots: $(VENV)/dev page
	@$(OSLER) download-models >/dev/null
	$(BIN)/python benchmarks/screenshots.py screenshots

## The whole HTTP API against its own schema, with at least 5,000 requests.
fuzz: $(VENV)/dev
	$(BIN)/python benchmarks/fuzz_api.py --cases 5000

## Every test under branch coverage: what was missed, by file, and the figures in all.
coverage: $(VENV)/dev
	@$(OSLER) download-models >/dev/null
	@rm -rf .venv/coverage && mkdir -p .venv/coverage
	$(BIN)/python -m coverage run -m pytest; tests=$$?; \
	  $(BIN)/python -m coverage combine --quiet && $(BIN)/python -m coverage report && \
	  $(BIN)/python -m coverage json --quiet -o - | $(BIN)/python -c 'import json, sys; t = json.load(sys.stdin)["totals"]; \
	    print("branches: {covered_branches:,} of {num_branches:,} ({percent_branches_covered:.1f} %)".format(**t)); \
	    print("statements: {covered_lines:,} of {num_statements:,} ({percent_statements_covered:.1f} %)".format(**t))'; \
	  exit $$tests

## Builds the three packages, installs them in a fresh environment and asks a question there. TAG=v1.2.3 must fit the version; DIST=dist keeps the files.
release-check: $(VENV)/dev
	$(BIN)/python scripts/release_check.py $(if $(TAG),--tag $(TAG)) $(if $(DIST),--keep $(DIST))

## Pins what the packages ask for; run after changing a dependency.
lock: COMPILE = .lock-tool/bin/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate $(OWN:%=--no-emit-package %)
lock: CORE = packages/osler/pyproject.toml --group pyproject.toml:build
lock:
	$(PYTHON) -m pip install --quiet --target .lock-tool uv
	$(COMPILE) $(CORE) -o requirements.lock
	$(COMPILE) $(CORE) --group pyproject.toml:dev $(LIGHT:%=--extra %) -o requirements-dev.lock
	$(COMPILE) $(CORE) --group pyproject.toml:docs --extra serve --constraint requirements-dev.lock -o requirements-docs.lock
	$(COMPILE) $(CORE) --group pyproject.toml:libraries --extra langchain --extra llama-index --extra haystack --constraint requirements-dev.lock -o requirements-libraries.lock
	$(COMPILE) --group pyproject.toml:mutants --constraint requirements-dev.lock -o requirements-mutants.lock
	$(COMPILE) --group pyproject.toml:linters -o requirements-linters.lock
	$(COMPILE) --no-deps requirements-extra.txt -o requirements-extra.lock
	$(COMPILE) --group pyproject.toml:litellm -o requirements-litellm.lock
	$(COMPILE) --group pyproject.toml:llama-cpp-python -o requirements-llama-cpp-python.lock
	rm -rf .lock-tool

clean:
	rm -rf $(VENV) $(HOME_DIR) site
