# Everything a developer does, by one verb each. `make` alone lists them.

BIN := .venv/bin
WORKERS ?=
ARGS ?=
CORE := $(wildcard services/*/*/compiled/*.p* services/*/*/*/compiled/*.p*)
TESTS := $(shell find tests -name '*.py' 2>/dev/null)
BESIDE := +@$(MAKE) --no-print-directory --jobs 2 --output-sync=target

# Tests wait for processes more than they compute, campaigns too: three workers keep two cores busy.
# Tests start thousands of processes: without bytecode each would compile all modules anew, half a second of CPU.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: docs dashboards help venv product demo test campaigns test-all check lint format protos constraints bench wheels deb soak clean
.PHONY: types rules

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: .venv/installed .venv/core ## make .venv with pinned, hash-checked packages (once), and build the compiled core

product: .venv/product .venv/core ## the same with what running needs only, a sixth of it: no Spark, no tests, no lint

.venv/product: constraints.txt pyproject.toml tools/make_venv tools/install_pinned.py
	@PYTHON="$(PYTHON)" tools/make_venv

.venv/installed: .venv/product
	@tools/make_venv everything

.venv/core: $(CORE) setup.py | .venv/product
	@tools/build_core
	@touch $@

demo: product ## two nodes, real messages, kill -9 of everything in turn, and the proof that nothing is lost
	@$(BIN)/tandem demo $(ARGS)

test: venv ## lint, then tests of every part, and a table of the lines that they run; the longer campaigns are left out
	$(BESIDE) types rules $(if $(ARGS),,.venv/tests)
	@$(BIN)/python tools/run_tests.py --workers $(or $(WORKERS),3) -m "not slow" --coverage $(ARGS)

campaigns: venv ## what `make test` leaves out: long fault campaigns, Java, Spark, containers, other languages
	@$(BIN)/python tools/run_tests.py --workers $(or $(WORKERS),3) -m slow $(ARGS)

test-all: test campaigns ## everything, each test once

check: venv ## the tests that ARGS names, long ones included, without lint: make check ARGS="tests/unit"
	@$(BIN)/python tools/run_tests.py --workers $(or $(WORKERS),2) $(ARGS)

lint: venv ## style, strict types, import rules, freshness of generated code
	$(BESIDE) types rules

# Half of lint's time is the types', which need one core: the rest runs on another.
types: | venv
	$(BIN)/mypy --no-error-summary -p tandemmq -p tests
	$(BIN)/mypy --no-error-summary tools

rules: | venv
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/lint-imports --no-logo >.import-rules.log || { cat .import-rules.log; exit 1; }
	$(BIN)/python tools/generate_protos.py --check
	$(BIN)/python tools/check_protos.py --check
	$(BIN)/python tools/generate_docs.py --check
	$(BIN)/python tools/generate_dashboards.py --check

# pytest rewrites the tests that have changed (all, after a clone: half a minute of CPU) and keeps what comes of it. Without
# this each worker would rewrite all of them. What cannot be collected is told by the run that follows.
.venv/tests: $(TESTS) | venv
	@$(BIN)/python -m pytest --collect-only -q -p no:cacheprovider >/dev/null 2>&1 || true
	@touch $@

format: venv ## put the code into its style
	$(BIN)/ruff check --quiet --fix .
	$(BIN)/ruff format --quiet .

docs: venv ## write docs/settings.md, docs/metrics.md and services/common/settings/setting_names.py from the code
	$(BIN)/python tools/generate_docs.py

dashboards: venv ## write dashboards/grafana/*.json and the alert rules from tools/boards
	$(BIN)/python tools/generate_dashboards.py

protos: venv ## generate the Python code of the contracts under protos/
	$(BIN)/python tools/generate_protos.py

constraints: ## renew constraints.txt from pyproject.toml (needs the uv command)
	@{ sed '/^[^#]/,$$d' constraints.txt; \
	uv pip compile pyproject.toml --quiet --extra server --extra spark --extra tracing --group dev --universal --python-version 3.11 --upgrade \
	    --generate-hashes --no-emit-index-url --no-annotate --no-header; } > constraints.new
	@mv constraints.new constraints.txt

bench: venv ## measure, beside Redis, NATS and RocketMQ where they are installed
	$(BIN)/python -m bench $(ARGS)

wheels: venv ## wheels with the compiled core for x86-64 and aarch64, and one without for the rest, in dist/
	$(BIN)/python tools/build_wheels.py

deb: wheels ## a Debian package of the broker for this machine's Python and processor, in dist/
	$(BIN)/python tools/build_deb.py

soak: venv ## long fault campaigns: make soak ARGS="--minutes 60", "--pair" for two nodes, "--transport" for damaged traffic
	$(BIN)/python -m tests.faults.soak $(ARGS)

clean: ## remove what was built, cached and stored, .venv and ./data included
	rm -rf .venv data build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	rm -f .import-rules.log .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
