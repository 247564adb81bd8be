# Every target makes and fills .venv as needed.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml CMakeLists.txt $(wildcard cmake/*) $(wildcard native/*/*)

.PHONY: demo test lint docs bench soak wheel wheel-test sanitize clean

demo: .venv/installed
	$(BIN)/sf2el demo --out results/demo

test: .venv/installed
	$(BIN)/python -m pytest -n auto

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

# The rows first, beside the commit before the model was rebuilt; then the rest.
bench: .venv/bench
	$(BIN)/python benchmarks/rows.py --against "$$($(BIN)/python benchmarks/beside.py)"
	$(BIN)/python benchmarks/varied.py
	$(if $(SF2EL_DATA),$(BIN)/python benchmarks/missing.py,@echo "benchmarks/missing.py needs SF2EL_DATA: left out")
	$(BIN)/python benchmarks/run_all.py
	$(BIN)/python benchmarks/many_models.py
	$(BIN)/python benchmarks/run_speed.py
	$(BIN)/python benchmarks/scenarios.py

soak: .venv/installed
	$(BIN)/python benchmarks/soak_budget.py
	$(BIN)/python benchmarks/soak_budget.py --kind paper
	$(BIN)/python benchmarks/soak_files.py
	$(BIN)/python benchmarks/soak_run.py

# For 3.11, or for 3.12 and newer: as PYTHON is.
wheel:
	$(PYTHON) -m venv --clear build/wheel/venv
	build/wheel/venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir dist .

# The wheel in an environment that has nothing else.
wheel-test: wheel
	.ci/wheel $(PYTHON)

# The compiled core under the address and undefined-behaviour sanitizers: the tests of tests/native, and these.
# SMALL=1: in a minute or so.
ifdef SMALL
SANITIZE_TESTS ?= tests/core tests/contracts/test_experts.py tests/model/test_files.py
else
SANITIZE_TESTS ?= tests/core tests/paper tests/contracts tests/model tests/test_embedded.py
endif

sanitize: .venv/sanitize
	SMALL=$(SMALL) .ci/sanitize $(SANITIZE_TESTS)

clean:
	rm -rf .venv build dist results docs/_build docs/auto_gallery

.venv/installed: $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[plot,test]"
	touch $@

.venv/bench: .venv/installed
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	touch $@

.venv/docs: .venv/installed
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $@

.venv/sanitize: .venv/installed
	$(BIN)/python -m pip install --quiet nanobind
	touch $@
