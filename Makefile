# Each target sets up what it needs; nothing is installed outside .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
FROM   ?=

.PHONY: demo test test-slow bench bench-redaction bench-retrieval lint clean lock

$(BIN)/.ready: requirements/runtime.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/runtime.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(BIN)/.ready-dev: $(BIN)/.ready requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@touch $@

demo: $(BIN)/.ready ## a daemon on sample conversations, from nothing to found and verified
	$(BIN)/python -m imprintd.demo $(if $(FROM),--from "$(FROM)")

test: $(BIN)/.ready-dev ## what continuous integration runs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q

test-slow: $(BIN)/.ready-dev ## long campaigns: kill -9, fuzzing, many seeds
	$(BIN)/pytest -q -m slow

lint: $(BIN)/.ready-dev
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

bench: $(BIN)/.ready-dev ## all benchmarks, one after another
	for name in learning latency embedding query long_events lexical; do \
		echo "== $$name"; PYTHONPATH=tests $(BIN)/python -m bench.$$name || exit 1; done

bench-redaction: $(BIN)/.ready-dev
	PYTHONPATH=tests $(BIN)/python -m bench.redaction

bench-retrieval: $(BIN)/.ready-dev
	PYTHONPATH=tests $(BIN)/python -m bench.retrieval

lock: ## write the lock files anew from pyproject.toml
	$(PYTHON) -m uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --python-version 3.11 pyproject.toml -o requirements/runtime.lock
	$(PYTHON) -m uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --python-version 3.11 pyproject.toml --group dev -o requirements/dev.lock

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
