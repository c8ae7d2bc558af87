# `make demo` and `make test` need Python 3.11+ and make, nothing else: they set up a virtual environment in .venv, and PostgreSQL
# and Java for the tests come as wheels. uv is used when it is there; otherwise python3 -m venv and pip.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test slow-tests mutants fuzz fuzz-service lint types format docs device clean

demo: $(VENV)/.demo-ready
	$(BIN)/sfumato demo

# Three processes on two cores: many tests wait for a disk, a server or a slot. A test goes to whichever process is free; those that share something costly stay together (tests/support/together.py).
# One thread for linear algebra in each of them: more would only wait for each other.
test: export OMP_NUM_THREADS = 1
# Many tests start a process; without byte code each would compile the package anew.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.dev-ready
	$(BIN)/python -m pytest -n 3 --dist loadgroup

# The tests that take longest, by name. Everything else: .venv/bin/pytest -m "not slow"
slow-tests: $(VENV)/.dev-ready
	@$(BIN)/python -m pytest -m slow --collect-only

# Small changes that lose privacy, one at a time on a copy: do the tests notice? (docs/soundness.md)
mutants: $(VENV)/.dev-ready
	$(BIN)/python -m tests.mutants

# Random tables replayed to a neighbour, 45 seconds for everything that releases something.
fuzz: $(VENV)/.dev-ready
	$(BIN)/python -m tests.fuzz

# Made-up requests to every address of the service, as every role and as nobody; some minutes.
fuzz-service: $(VENV)/.dev-ready
	$(BIN)/python tests/service/schemathesis_full.py

lint: $(VENV)/.dev-ready
	$(BIN)/ruff format --check src tests device
	$(BIN)/ruff check --output-format concise src tests device

types: $(VENV)/.dev-ready
	$(BIN)/mypy

format: $(VENV)/.dev-ready
	$(BIN)/ruff format src tests device
	$(BIN)/ruff check --fix --output-format concise src tests device

docs: $(VENV)/.docs-ready
	$(BIN)/mkdocs build --strict

# The wheel of sfumato-device, the part for a person's device (docs/attributes.md), into dist/.
device: | $(BIN)/python
	@if command -v uv >/dev/null 2>&1; then uv build --quiet --wheel --out-dir dist device; \
	  else $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist ./device; fi
	@ls dist/sfumato_device-*.whl

# A half-made environment is taken away again, or the next call would take it for a whole one.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Sfumato needs Python 3.11 or newer; $(PYTHON) is older or absent. Try: make PYTHON=python3.12 ..."; exit 2; }
	@if command -v uv >/dev/null 2>&1; then uv venv --quiet --python "$$(command -v $(PYTHON))" $(VENV); \
	  else $(PYTHON) -m venv $(VENV); fi || \
	  { rm -f $(BIN)/python; echo "No virtual environment could be made: $(PYTHON) lacks its module venv, and uv is not here."; exit 2; }

# An environment that uv made has no pip; where uv is gone since, Python brings its own.
define install
	@if command -v uv >/dev/null 2>&1; then uv pip install --quiet --python $(BIN)/python -e "$(1)"; \
	  else $(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null; \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check -e "$(1)"; fi
	@touch $@
endef

$(VENV)/.demo-ready: pyproject.toml | $(BIN)/python
	@echo "Setting up $(VENV) (once, a minute or two) ..."
	$(call install,.)

$(VENV)/.dev-ready: pyproject.toml | $(BIN)/python
	@echo "Setting up $(VENV) with the development tools (once, a few minutes) ..."
	$(call install,.[dev])

$(VENV)/.docs-ready: pyproject.toml | $(BIN)/python
	$(call install,.[docs])

clean:
	rm -rf $(VENV) site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
