# make demo and make test work on a machine that has Python >= 3.10 with venv and a C++ compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CPP := $(wildcard $(foreach ext,cpp hpp inl,cpp/bind/*.$(ext) cpp/core/*/*.$(ext) cpp/core/*/*/*.$(ext)))
SOURCES := pyproject.toml CMakeLists.txt $(CPP)

.PHONY: demo test test-all test-kernels test-torch explore fuzz faults sanitize lint format stubs bench docs figures site dist wheels package-check clean

# The environment with what crfkit is built with; crfkit itself; the tools of developers. The core is compiled in one
# place (build/) by one set of tools, so each source is compiled once and again only when it changes. Python files are
# read from src in place.
$(VENV)/.tools: .ci/prepare
	.ci/prepare $(VENV) $(PYTHON)
	touch $@

$(VENV)/.user: $(VENV)/.tools $(SOURCES)
	@echo "Compiling the C++ core; the first time takes one to three minutes."
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.user
	$(BIN)/python -m pip install --quiet 'crfkit[dev]' # crfkit is there: this adds what its extra names
	touch $@

demo: $(VENV)/.user
	$(BIN)/crfkit demo

# Most tests, in minutes; all of them; and those that compute as other machines would: every set of kernels, 1 to 4
# threads, other kernels of OpenBLAS and NumPy. `make docs` runs tests/docs.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal --ignore=tests/docs
test: $(VENV)/.dev
	$(PYTEST) -m 'not slow'

test-all: $(VENV)/.dev
	$(PYTEST)

test-kernels: $(VENV)/.dev
	$(BIN)/python tests/settings.py

# The layers for PyTorch, with its build for the CPU (plain torch brings gigabytes for GPUs), pytorch-crf to compare
# with, and transformers for a page.
TORCH ?= torch==2.13.0
WITH_TORCH := src/crfkit/torch docs/howto/crf_layer.md docs/howto/grid_layer.md docs/howto/transformers_crf.md \
	docs/migration/pytorch_crf.md
test-torch: $(VENV)/.torch
	$(BIN)/python -m pytest -n 2 --doctest-modules --doctest-glob='*.md' tests/pytorch $(WITH_TORCH)

$(VENV)/.torch: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet '$(TORCH)' pytorch-crf transformers
	$(BIN)/python -m pip install --quiet triton || echo 'Triton is not to be had here: tests of its kernels are skipped'
	touch $@

# Property-based tests with fresh seeds, for ten minutes or MINUTES=…; exits with 1 when one fails.
MINUTES ?= 10
explore: $(VENV)/.dev
	$(BIN)/python tests/explore.py $(MINUTES) -n 2

# Changed models, checkpoints, files and inputs in watched processes, for a minute or SECONDS=…; findings go to build/fuzz.
# TARGETS=chain,csv limits it to names that begin so, CASE=target:number runs one case again, MEMORY is in GB.
SECONDS ?= 60
SEED ?= 0
MEMORY ?= 2
FUZZ ?= $(BIN)/python
fuzz: $(VENV)/.dev
	PYTHONPATH=tests $(FUZZ) -m fuzz --seconds $(SECONDS) --seed $(SEED) --memory $(MEMORY) --targets='$(TARGETS)' --case='$(CASE)'

# The native tests and the fuzzer on a core built with ASan and UBSan, then threads on one built with TSan.
sanitize: $(VENV)/.dev
	$(BIN)/python tests/sanitized.py address
	$(BIN)/python tests/sanitized.py address -- -m fuzz --seconds $(SECONDS) --seed $(SEED) --memory 4
	$(BIN)/python tests/sanitized.py thread

# Kills, signals, full disks and the like at random moments, with KILLS=…, SIGINTS=…, SIGTERMS=…, TIMES=…, SEED=…; one
# line per kind, and exit code 1 if a model was lost or anything else happened that must not.
export KILLS SIGINTS SIGTERMS TIMES SEED
faults: $(VENV)/.dev
	$(BIN)/python tests/faults/run.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/python -m nanobind.stubgen -q -m crfkit._core -o $(VENV)/_core.pyi
	diff -u src/crfkit/_core.pyi $(VENV)/_core.pyi

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

# The types of the compiled core, for type checkers and editors.
stubs: $(VENV)/.dev
	$(BIN)/python -m nanobind.stubgen -q -m crfkit._core -o src/crfkit/_core.pyi

# All measurements of README and documentation; at most 90 minutes on two cores. An interrupted run continues. With
# BENCH='--quick' a trial of minutes; '--list' shows the steps, '--only speed' runs some, '--fresh' measures all again.
BENCH ?=
bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run_all.py $(BENCH)

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet 'crfkit[bench,peers]' || echo 'their benchmarks are skipped'
	touch $@

# Every example of the documentation runs: docstrings, Python and shell blocks of pages, scripts of the gallery.
# `make test-torch` runs those that need PyTorch.
PAGES := README.md docs/index.md $(addprefix docs/,tutorials howto guides migration explanation)
docs: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --doctest-modules src/crfkit --doctest-glob='*.md' $(PAGES) tests/docs \
		$(addprefix --ignore=,$(WITH_TORCH))

# Measured figures and pictures of README and documentation, from committed results.
figures: $(VENV)/.dev
	$(BIN)/python docs/figures/write_figures.py
	for script in docs/figures/front_*.py docs/figures/tutorial_*.py; do $(BIN)/python $$script || exit 1; done

# The documentation site in build/site. Warnings and dead links are errors. GALLERY=0 leaves out the pictures of the
# gallery, whose scripts take a minute.
GALLERY ?= 1
site: $(VENV)/.dev
	GALLERY=$(GALLERY) $(BIN)/python -m sphinx --fail-on-warning --keep-going --jobs 2 --quiet docs build/site
	$(BIN)/python docs/_ext/check_links.py build/site

# The sdist, and a wheel for this machine that is made from it, in dist/.
dist: $(VENV)/.user
	$(BIN)/python -m pip install --quiet build twine
	$(BIN)/python -m build --outdir dist
	$(BIN)/python .ci/check_contents.py dist/*
	$(BIN)/python -m twine check --strict dist/*

# Wheels for all versions of Python on this operating system, in wheelhouse/. Linux needs Docker or Podman.
wheels: $(VENV)/.user
	$(BIN)/python -m pip install --quiet cibuildwheel
	$(BIN)/python -m cibuildwheel

# Install the sdist in a new environment outside the repository and try it.
package-check:
	PYTHON=$(PYTHON) .ci/package

clean:
	rm -rf $(VENV) build dist wheelhouse
