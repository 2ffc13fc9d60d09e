# On a machine with Python 3.11+ and make, every target sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
# Optional packages (servers, clusters, other libraries) are large; they have an environment of their own.
EXTRAS := .venv-extras
EXTRAS_READY := $(EXTRAS)/ready
# LensKit needs an older pandas than the others.
LENSKIT := .venv-lenskit
LENSKIT_READY := $(LENSKIT)/ready
# The documentation site; tacit itself is only read there, not run.
SITE := .venv-site
SITE_READY := $(SITE)/ready

# Tests start many processes; without bytecode each of them compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-slow test-extras test-lenskit test-all mutants check dependencies bench bench-quick bench-ray leaderboard docs site clean

demo: $(READY)
	$(BIN)/tacit demo --folder build/demo --force  # build/ is ours, also as older versions left it

test: $(READY)
	$(BIN)/python -m pytest -m "not slow and not extras" -n auto --dist worksteal

# Mutants first and by themselves: one process breeds them all, and uses all cores.
test-slow: $(READY)
	$(BIN)/python -m pytest -m "slow and not extras" tests/mutants
	$(BIN)/python -m pytest -m "slow and not extras" -n auto --dist worksteal --ignore tests/mutants tests

# What needs an optional package: the server, the cluster, adapters for other libraries.
test-extras: $(EXTRAS_READY)
	$(EXTRAS)/bin/python -m pytest -m extras tests --ignore tests/mutants

test-lenskit: $(LENSKIT_READY)
	$(LENSKIT)/bin/python -m pytest -m extras tests/integrations/test_lenskit_scorer.py

test-all: test test-slow test-extras test-lenskit

# Thousands of small changes of the trust zone and the accounts; about an hour of one core. What is
# known from an earlier run is in build/mutants and is not run again.
mutants: $(READY) test
	PYTHONPATH=. $(BIN)/python -m tests.mutants.systematic
	PYTHONPATH=. $(BIN)/python -m tests.mutants.report

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python benchmarks/ratios.py
	$(BIN)/python benchmarks/frank_wolfe.py
	$(BIN)/python benchmarks/oja.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/methods.py --users 50000
	$(BIN)/python benchmarks/web.py

# A quarter of a minute: the ratios to peers that must hold, with wider margins; what fails is measured three times.
bench-quick: $(READY)
	$(BIN)/python benchmarks/ratios.py --quick

# Rounds on a local Ray cluster of two processes.
bench-ray: $(EXTRAS_READY)
	$(EXTRAS)/bin/python benchmarks/ray_rounds.py

leaderboard: $(READY)
	$(BIN)/tacit reproduce leaderboard --output docs/results
	$(BIN)/tacit reproduce leaderboard-lists --output docs/results

dependencies: $(READY)
	$(BIN)/python -m pip check --disable-pip-version-check
	$(BIN)/python .ci/dependencies.py

# Into build/site, with warnings as errors and nothing loaded from elsewhere.
site: $(SITE_READY)
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict --quiet

docs: $(READY)
	$(BIN)/python -m pytest docs README.md

clean:
	rm -rf $(VENV) $(EXTRAS) $(LENSKIT) $(SITE) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tacit needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $(READY)

$(EXTRAS_READY): pyproject.toml constraints.txt constraints-extras.txt
	$(PYTHON) -m venv $(EXTRAS)
	$(EXTRAS)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -c constraints-extras.txt -e ".[test,figures,extras]"
	@touch $(EXTRAS_READY)

$(LENSKIT_READY): pyproject.toml constraints.txt constraints-extras.txt constraints-lenskit.txt
	$(PYTHON) -m venv $(LENSKIT)
	grep -vE '^(pandas|mpmath)==' constraints.txt > $(LENSKIT)/constraints.txt
	$(LENSKIT)/bin/python -m pip install --quiet --disable-pip-version-check -c $(LENSKIT)/constraints.txt -c constraints-lenskit.txt -e ".[lenskit-test]"
	@touch $(LENSKIT_READY)

$(SITE_READY): constraints.txt constraints-site.txt
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -c constraints-site.txt mkdocs-material mkdocstrings-python latex2mathml ruff
	@touch $(SITE_READY)
