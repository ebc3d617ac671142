# `make demo` and `make test` are all a newcomer needs; each does its own set-up into .venv.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
COMPILER := $(if $(shell command -v cc),,.venv/compiler/cc)

# Tests and service start hundreds of processes; each would compile what it imports anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-gpu lint format lock bench bench-api bench-builds bench-load bench-logs bench-metric-example bench-run bench-search bench-metric bench-parse chaos fuzz setup clean

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "firstbad needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv .venv \
	  || { echo "python3 cannot make a virtual environment; on Debian: apt-get install python3-venv"; rm -rf .venv; exit 1; }
	@awk '/^[a-z0-9]/ { ours = 0 } /^uv==/ { ours = 1 } ours' requirements.lock > .venv/uv.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r .venv/uv.lock
	@VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --compile-bytecode --require-hashes -r requirements.lock
	@VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY) $(COMPILER)
	@$(BIN)/python -m examples.demo $(ARGS)

# The example holds C. Where there is no C compiler, one from a wheel serves.
.venv/compiler/cc: requirements-compiler.lock | $(READY)
	@echo "no C compiler here: taking the one in the ziglang wheel (about 400 MB on disk)"
	@VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --require-hashes --target .venv/compiler -r requirements-compiler.lock
	@printf '#!/bin/sh\nZIG_GLOBAL_CACHE_DIR="$${UV_CACHE_DIR:-$$HOME}/zig" exec "%s" cc "$$@"\n' \
	  "$(CURDIR)/.venv/compiler/ziglang/zig" > $@
	@chmod +x $@

test: $(READY)
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder $(ARGS)

# For a machine with a GPU; says so where there is none.
test-gpu: $(READY)
	@$(BIN)/python -m tests.gpu

# Bisections of the example while parts of the service are killed, cut off and filled up; for root on Debian.
chaos: $(READY)
	@$(BIN)/python -m tests.chaos $(ARGS)

# The API against its own document, with many more requests than the tests send.
FUZZ ?= 150
fuzz: $(READY)
	FIRSTBAD_FUZZ=$(FUZZ) $(BIN)/python -m pytest -q --timeout 0 tests/api/test_openapi_fuzz.py $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format --quiet .

# Hashes and names only: an address of a package index has no place in the repository.
lock: $(READY)
	$(BIN)/uv export --quiet --format requirements-txt --no-emit-project --no-header --python 3.11 -o requirements.lock
	rm -f uv.lock

bench: $(READY)
	$(BIN)/python -m benchmarks.bisection $(ARGS)

bench-api: $(READY)
	$(BIN)/python -m benchmarks.api $(ARGS)

bench-builds: $(READY)
	$(BIN)/python -m benchmarks.builds $(ARGS)

bench-load: $(READY)
	$(BIN)/python -m benchmarks.load $(ARGS)

bench-parse: $(READY)
	@$(BIN)/python -m benchmarks.parse $(ARGS)

bench-logs: $(READY)
	$(BIN)/python -m benchmarks.logs $(ARGS)

bench-metric-example: $(READY)
	$(BIN)/python -m benchmarks.metric_example $(ARGS)

bench-run: $(READY)
	$(BIN)/python -m benchmarks.local $(ARGS)

bench-search: $(READY)
	$(BIN)/python -m benchmarks.search $(ARGS)

bench-metric: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.metric $(ARGS)

clean:
	rm -rf .demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
