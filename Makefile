# Each target makes what it needs, .venv included. `make` alone lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
VENV_FRAMEWORKS := .venv-frameworks

# More processes than cores: most tests wait for programs that they start. See `_group` in tests/conftest.py.
AT_ONCE := -n 5 --dist loadscope --durations 15
# `--reruns 1` in .ci/run alone, on machines that others use too: what failed once is shown in full.
AGAIN :=
# Or each of a thousand processes compiles our sources and tests for itself: a quarter of all the time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-timed test-slow test-torch test-python test-lowest test-newest test-sanitize test-frameworks check format bench bench-advice
.PHONY: docs wheels clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

demo: $(READY) ## profile a small real training through a bad and through a good loader
	@$(BIN)/loaderscope demo

test: check ## linter, type checker, import contracts, then the tests: all that asserts behaviour (7 minutes on two idle cores)
	@$(BIN)/python -m pytest -m "not quiet and not slow" $(AT_ONCE) $(AGAIN)

test-fast: $(READY) ## the tests that start no process (2 minutes)
	@$(BIN)/python -m pytest --fast -m "not quiet and not slow"

test-timed: $(READY) ## loops judged by their times (5 minutes; keep the machine idle)
	@$(BIN)/python -m pytest -m quiet $(AGAIN)

test-slow: test-timed ## all that `make test` leaves out: those, and more variants of its tests
	@$(BIN)/python -m pytest -m slow $(AT_ONCE) $(AGAIN)

test-sanitize: $(READY) ## the compiled form under AddressSanitizer and UBSan (half an hour)
	@$(BIN)/python tests/sanitize.py

# `make test-torch VERSION=2.15.0`, or `make test-torch 2.15.0`; TEST_ENV=folder uses an environment that is there.
ifneq ($(filter $(firstword $(MAKECMDGOALS)),test-torch test-python),)
VERSION ?= $(word 2,$(MAKECMDGOALS))
ifneq ($(word 2,$(MAKECMDGOALS)),)
.PHONY: $(word 2,$(MAKECMDGOALS))
$(word 2,$(MAKECMDGOALS)): ; @:
endif
endif
VERSIONS = $(PYTHON) benchmarks/versions.py $(subst test-,,$@) $(VERSION) $(if $(TEST_ENV),--env $(TEST_ENV))

test-torch: ## whether one release of torch is handled, in an environment of its own (VERSION=2.15.0)
	@$(VERSIONS) --store benchmarks/results/torch

test-python: ## the same for one Python, with the fast tests (VERSION=3.14)
	@$(VERSIONS) --store benchmarks/results/python

test-lowest: ## the fast tests with the lowest versions of dependencies that pyproject.toml allows
	@$(VERSIONS) --store benchmarks/results/dependencies

test-newest: ## the same with the newest
	@$(VERSIONS) --store benchmarks/results/dependencies

# FRAMEWORKS_ENV=folder uses an environment that has (some of) them; what is not installed is skipped.
test-frameworks: $(READY) ## each framework for real, in an environment of their own (some minutes and 8 GB)
	@test -n "$(FRAMEWORKS_ENV)" -o -x $(VENV_FRAMEWORKS)/bin/pytest || { $(PYTHON) -m venv $(VENV_FRAMEWORKS) && $(VENV_FRAMEWORKS)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/frameworks/requirements.txt; }
	@PYTHONPATH=$(CURDIR)/$(VENV)/house $(or $(FRAMEWORKS_ENV),$(VENV_FRAMEWORKS))/bin/python -m pytest tests/frameworks

check: $(READY) ## linter, formatter, type checker, import contracts, size
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python -m mypy
	@$(BIN)/python -m mypy --config-file .ci/benchmarks-mypy.ini
	@$(BIN)/lint-imports
	@$(BIN)/python tests/size.py

format: $(READY) ## let the linter and the formatter repair what they can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY) ## measure what recording costs (keep the machine otherwise idle)
	@$(BIN)/python benchmarks/overhead.py --store benchmarks/results
	@$(BIN)/python benchmarks/stacks_cost.py --store benchmarks/results
	@$(BIN)/python benchmarks/device_cost.py --store benchmarks/results

bench-advice: $(READY) ## known answers, the device, prediction error, seeds, tuning (90 minutes; keep the machine idle)
	@$(BIN)/python benchmarks/known_answers.py --store benchmarks/results
	@$(BIN)/python benchmarks/inside.py --measure --store benchmarks/results
	@$(BIN)/python benchmarks/device.py --store benchmarks/results
	@$(BIN)/python benchmarks/prediction.py --store benchmarks/results
	@$(BIN)/python benchmarks/seeds.py --store benchmarks/results
	@$(BIN)/python benchmarks/tune.py --store benchmarks/results
	@$(BIN)/python benchmarks/try.py --store benchmarks/results

docs: $(READY) ## the site of the documentation, in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet && echo "build/site/index.html"

wheels: $(READY) ## sdist and wheels in dist/, checked, and used in an environment without a compiler
	@$(BIN)/python .ci/wheels.py

clean: ## remove the environments, caches and builds
	rm -rf $(VENV) $(VENV_FRAMEWORKS) .venv-wheels .venv-torch-* .venv-python-* .venv-lowest .venv-newest benchmarks/.env* build dist *.egg-info profiler/native/*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The repository's root is the package `loaderscope`, whatever the clone's folder is called: a link of that name in
# .venv/house, which is on the environment's path, makes every tool see it so. The editable install adds the
# `loaderscope` command, the metadata and what the package depends on; its finder, which would double the start of every
# Python process, is not needed.
$(READY): pyproject.toml constraints.txt $(wildcard profiler/native/src/*)
	@echo "Setting up $(VENV) (once; torch is large)"
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit("Loaderscope needs Python 3.10 or later; try: make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV)
	@mkdir -p $(VENV)/house && ln -sfn ../.. $(VENV)/house/loaderscope
	@$(BIN)/python -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "house.pth").write_text("../../../house\n")'
	@$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[dev]' > $(VENV)/pip.log 2>&1 || { cat $(VENV)/pip.log; exit 1; }
	@rm -f $(VENV)/lib/python3*/site-packages/__editable__*
	@touch $@
