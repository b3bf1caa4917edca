# `make demo` and `make test` need only make and Python 3.11 or newer; the first one found is used.
SUPPORTED = import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$name -c '$(SUPPORTED)' 2>/dev/null && echo $$name && break; done)
VENV ?= .venv
BIN = $(VENV)/bin
JOBS ?= 2
SEED ?= 0
SECONDS ?= 600

.PHONY: demo test lint types pytest numpy sanitize coverage nightly fuzz torch browser js paper pictures docs linkcheck versions dist lock locked audit mutants clean

demo: $(VENV)/.base
	$(BIN)/python examples/demo.py

test: lint types pytest numpy

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

# Each process of pytest uses one thread, unless a test asks for more.
ONE_THREAD = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 LOKY_MAX_CPU_COUNT=1

# pytest also collects the doctests of the package and of the guides. Each file runs in one process, so that its
# fixtures are made once.
pytest: $(VENV)/.dev js/node_modules
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --durations 10
	@sh tools/ensure_chromium.sh --find >/dev/null || echo "The browser tests were skipped: run 'make browser' first."

# The core tests once more without the C kernels.
numpy: $(VENV)/.dev
	$(ONE_THREAD) MERCAT_NATIVE=0 $(BIN)/python -m pytest -q -n $(JOBS) tests/test_angles.py tests/test_exact.py \
		tests/test_placement.py tests/test_neighbors.py tests/test_repulsion.py tests/test_promises_repeatable.py

# Tests of the kernels with AddressSanitizer and UndefinedBehaviorSanitizer, and of their threads with
# ThreadSanitizer; needs GCC.
sanitize: $(VENV)/.dev
	$(BIN)/python tools/sanitize.py

# Tests with coverage.
coverage: $(VENV)/.dev js/node_modules
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --cov --cov-report term:skip-covered

# Tests with many repetitions: property-based ones on 2500 data sets each, readers on 500 mutated files per format.
nightly: $(VENV)/.dev
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) -m nightly tests
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -n $(JOBS) -o faulthandler_timeout=3600 tests/test_properties.py
	$(BIN)/python tests/fuzz.py --number 500 --seed $(SEED)

# Fuzz the readers: mutated files by SEED, then SECONDS of coverage-guided fuzzing for each reader.
fuzz: $(VENV)/.dev $(VENV)-fuzz/.done
	$(BIN)/python tests/fuzz.py --number 3000 --seed $(SEED)
	for format in csv npy npz sparse mtx model parquet feather h5ad zarr; do \
		$(VENV)-fuzz/bin/python tests/fuzz_coverage.py $$format -max_total_time=$(SECONDS) || exit 1; done

# Chromium for the tests of the viewer: installs Debian's package as root; elsewhere prints what is missing.
browser:
	sh tools/ensure_chromium.sh

js/node_modules: js/package-lock.json
	-cd js && npm ci --no-audit --no-fund

# Tests of torch devices, with torch's CPU build in a separate folder, and of the Triton kernels, by its interpreter.
# (Plain `pip install torch` would download gigabytes of CUDA, so `dev` does not include it.)
TORCH = torch==2.13.0
torch: $(VENV)/.dev $(VENV)-torch/.done
	PYTHONPATH=$(abspath $(VENV)-torch) $(BIN)/python -m pytest -q -n $(JOBS) tests/test_torch*.py

$(VENV)-torch/.done: | $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --target $(VENV)-torch $(TORCH) --retries 0 \
		--index-url https://download.pytorch.org/whl/cpu || \
		$(BIN)/python -m pip install --quiet --target $(VENV)-torch $(TORCH)
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(VENV)-torch triton==3.9.0
	touch $@

# Rebuild the viewer's bundle from its source.
js: js/node_modules
	cd js && npm test && npm run build

# Reproduce the paper's tables and figures; DATA is the folder of the real data sets. Continues where it stopped.
paper: $(VENV)/.dev
	$(BIN)/python -m paper $(if $(DATA),--data $(DATA))

# Pictures of the README and the guides, in docs/images; look at them before committing.
pictures: $(VENV)/.dev
	$(BIN)/python -m examples.pictures

# The site, in docs/_build/html, with its figures, explorers and gallery.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
	@echo "Read it: docs/_build/html/index.html"

# Check external links; needs the network.
linkcheck: $(VENV)/.docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -D plot_gallery=0 -b linkcheck docs docs/_build/linkcheck

# All tests with the lowest and with the newest supported versions of the dependencies.
versions: $(VENV)/.dev
	$(BIN)/nox

# Sdist and wheels for Linux, macOS and Windows, built twice and compared.
dist: $(VENV)/.wheels
	$(BIN)/python tools/build_twice.py

# Lock the versions of all packages for development, with hashes, for all platforms.
lock: $(VENV)/.supply
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade \
		--extra dev --extra docs --output-file requirements/dev.txt pyproject.toml

# Install exactly the locked versions, for `make test` and `make docs`.
locked: | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(VENV)/.dev $(VENV)/.docs $(VENV)/.base

# Check the locked versions for known vulnerabilities; needs the network, and fails without it.
audit: $(VENV)/.supply
	$(BIN)/pip-audit --strict --require-hashes --disable-pip --requirement requirements/dev.txt
	cd js && npm audit

# Mutation testing of the mathematics; docs/maintaining/mutants.md explains the survivors.
mutants: $(VENV)-mutants/.done
	-$(VENV)-mutants/bin/mutmut run --max-children 1
	$(VENV)-mutants/bin/mutmut results

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer on the PATH: name one, as in 'make PYTHON=/path/to/python3'."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@ $(VENV)/.base

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $@ $(VENV)/.base

$(VENV)/.wheels: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[wheels]"
	touch $@

$(VENV)/.supply: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[supply]"
	touch $@

$(VENV)-mutants/.done: pyproject.toml
	$(PYTHON) -m venv $(VENV)-mutants
	$(VENV)-mutants/bin/python -m pip install --quiet --editable ".[mutants]"
	touch $@

# Atheris has wheels for Linux.
$(VENV)-fuzz/.done: pyproject.toml
	$(PYTHON) -m venv $(VENV)-fuzz
	$(VENV)-fuzz/bin/python -m pip install --quiet --editable ".[dev]" "atheris>=3"
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-mutants $(VENV)-fuzz $(VENV)-torch mutants dist build demo docs/_build docs/generated docs/gallery docs/api/generated .mypy_cache .ruff_cache .pytest_cache .hypothesis js/node_modules
