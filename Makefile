# `make demo` and `make test` need nothing but make and any Python from 3.11 on: the first that is found.
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

# The processes of pytest share the cores: each computes on one thread, unless a test asks for more.
ONE_THREAD = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 LOKY_MAX_CPU_COUNT=1

# Doctests of the package and of the guides are collected by pytest with the tests. Each file runs in one process,
# which makes its fixtures once.
pytest: $(VENV)/.dev js/node_modules
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --durations 10
	@sh tools/ensure_chromium.sh --find >/dev/null || echo "The browser tests were skipped: run 'make browser' first."

# The core once more without the kernels in C: NumPy defines what they do, and does it where there is no compiler.
numpy: $(VENV)/.dev
	$(ONE_THREAD) MERCAT_NATIVE=0 $(BIN)/python -m pytest -q -n $(JOBS) tests/test_angles.py tests/test_exact.py \
		tests/test_placement.py tests/test_neighbors.py tests/test_repulsion.py tests/test_promises_repeatable.py

# The tests of the kernels with AddressSanitizer and UndefinedBehaviorSanitizer; needs GCC.
sanitize: $(VENV)/.dev
	$(BIN)/python tools/sanitize.py

# The same, and which lines and branches no test reaches.
coverage: $(VENV)/.dev js/node_modules
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --cov --cov-report term:skip-covered

# Tests of many repetitions; the properties that hold for any data, each tried on 2500 data sets; readers, on 500
# mutated files of each format.
nightly: $(VENV)/.dev
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) -m nightly tests
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -n $(JOBS) -o faulthandler_timeout=3600 tests/test_properties.py
	$(BIN)/python tests/fuzz.py --number 500 --seed $(SEED)

# Looks for files that break a reader: a corpus of mutated files by SEED, then SECONDS of coverage for each reader.
fuzz: $(VENV)/.dev $(VENV)-fuzz/.done
	$(BIN)/python tests/fuzz.py --number 3000 --seed $(SEED)
	for format in csv npy npz sparse mtx model parquet feather h5ad zarr; do \
		$(VENV)-fuzz/bin/python tests/fuzz_coverage.py $$format -max_total_time=$(SECONDS) || exit 1; done

# Chromium for the viewer's tests: installs Debian's package as root; elsewhere says what is missing.
browser:
	sh tools/ensure_chromium.sh

js/node_modules: js/package-lock.json
	-cd js && npm ci --no-audit --no-fund

# The tests of torch devices, with torch's CPU build in a folder of its own, and of the kernels in Triton, by its
# interpreter. (Plain `pip install torch` would fetch gigabytes of CUDA, so `dev` leaves it out.)
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

# Tables and figures of the paper beside ours; DATA is the folder of the real data sets. Goes on where it stopped.
paper: $(VENV)/.dev
	$(BIN)/python -m paper $(if $(DATA),--data $(DATA))

# The pictures of the README and the guides, in docs/images; look at them before they are committed.
pictures: $(VENV)/.dev
	$(BIN)/python -m examples.pictures

# The site, in docs/_build/html; its figures, explorers and gallery are made anew.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
	@echo "Read it: docs/_build/html/index.html"

# Links that lead out of the site; needs the network.
linkcheck: $(VENV)/.docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -D plot_gallery=0 -b linkcheck docs docs/_build/linkcheck

# All tests with the lowest and with the newest versions of what Mercat requires.
versions: $(VENV)/.dev
	$(BIN)/nox

# Sdist and wheels for Linux, macOS and Windows, built twice and compared.
dist: $(VENV)/.wheels
	$(BIN)/python tools/build_twice.py

# Writes down the exact versions, with hashes, of all that development needs, on every platform.
lock: $(VENV)/.supply
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade \
		--extra dev --extra docs --output-file requirements/dev.txt pyproject.toml

# The environment with exactly what is written down there, for `make test` and `make docs`.
locked: | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(VENV)/.dev $(VENV)/.docs $(VENV)/.base

# Known vulnerabilities of what is written down; needs the network, and fails where it cannot ask.
audit: $(VENV)/.supply
	$(BIN)/pip-audit --strict --require-hashes --disable-pip --requirement requirements/dev.txt
	cd js && npm audit

# Mutants of the mathematics that no test notices; docs/maintaining/mutants.md explains those that are left.
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
