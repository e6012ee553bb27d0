# make demo and make test work on a machine that has Python >= 3.10 with venv and a C++ compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CPP := $(wildcard $(foreach ext,cpp hpp inl,cpp/bind/*.$(ext) cpp/core/*/*.$(ext)))
SOURCES := pyproject.toml CMakeLists.txt $(CPP)

.PHONY: demo test lint format stubs bench docs clean

# Two installs: what a user gets, and that plus the tools. The stamp is renewed when the core changes;
# Python files are read from src in place.
$(VENV)/.user: $(SOURCES)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.user
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(VENV)/.user
	$(BIN)/crfkit demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

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

bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python benchmarks/chain.py
	$(BIN)/python benchmarks/solvers.py
	$(BIN)/python benchmarks/inference.py
	$(BIN)/python benchmarks/segment.py

docs: $(VENV)/.dev
	$(BIN)/python docs/members.py
	$(BIN)/python -m pytest --doctest-modules src/crfkit --doctest-glob='*.md' README.md docs

clean:
	rm -rf $(VENV) build
