# Every target makes and fills .venv as needed.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml CMakeLists.txt $(wildcard cmake/*) $(wildcard native/*)

.PHONY: demo test lint bench soak clean

demo: .venv/installed
	$(BIN)/sf2el demo --out results/demo

test: .venv/installed
	$(BIN)/python -m pytest

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/bench
	$(BIN)/python benchmarks/run_all.py
	$(BIN)/python benchmarks/many_models.py

soak: .venv/installed
	$(BIN)/python benchmarks/soak_budget.py

clean:
	rm -rf .venv build results

.venv/installed: $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[plot,test]"
	touch $@

.venv/bench: .venv/installed
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	touch $@
