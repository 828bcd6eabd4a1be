# The verbs. Everything is installed into .venv; nothing outside this directory is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= out
# One build serves `run` and `test`: quick to make, nearly as fast as a release wheel.
PROFILE ?= ci
CARGO_TEST := cargo test --quiet --profile $(PROFILE)

export PYSPARK_PYTHON := $(abspath $(BIN))/python
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)

.PHONY: help run test test-rust test-python test-spark lint format bench bench-spark wheel docs clean

help:
	@echo "make run      build, install into $(VENV), ingest samples/ on embedded Spark, print the result"
	@echo "make test     everything CI runs: lint, Rust, Python, then Spark"
	@echo "make lint     rustfmt, clippy, ruff, mypy, stubtest"
	@echo "make format   rustfmt and ruff, in place"
	@echo "make bench    speed against the peers on the same bytes; writes docs/benchmarks.md"
	@echo "make bench-spark  the same against Spark's own Kafka source and a real broker"
	@echo "make wheel    a release wheel in target/wheels"
	@echo "make docs     the Rust API's pages in target/doc"

# --- set-up -------------------------------------------------------------------------------------

$(BIN)/python:
	@scripts/prerequisites "$(PYTHON)" java
	$(PYTHON) -m venv $(VENV)

# The Python side's requirements change rarely, the Rust sources often: two stamps.
$(VENV)/requirements: pyproject.toml | $(BIN)/python
	@scripts/prerequisites "$(PYTHON)" java
	$(BIN)/python scripts/requirements.py pyproject.toml dev > $(VENV)/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $(VENV)/dev.txt
	touch $@

RUST := Cargo.toml Cargo.lock $(shell find src -name '*.rs')
$(VENV)/built: $(VENV)/requirements $(RUST) pyproject.toml
	. $(BIN)/activate && maturin develop --quiet --profile $(PROFILE)
	touch $@

# --- the main job -------------------------------------------------------------------------------

run: $(VENV)/built
	$(BIN)/magicbyte ingest samples $(OUT) --overwrite
	$(BIN)/python examples/show_tables.py $(OUT)

# --- tests --------------------------------------------------------------------------------------

test: lint test-rust test-python test-spark

test-rust:
	@scripts/prerequisites "$(PYTHON)"
	$(CARGO_TEST)
	$(CARGO_TEST) --features arrow,serde --doc
	for codec in gzip snappy lz4 zstd; do cargo check --quiet --profile $(PROFILE) --no-default-features --features $$codec || exit 1; done
	cargo check --quiet --profile $(PROFILE) --no-default-features

test-python: $(VENV)/built
	$(BIN)/python -m pytest -q -m "not spark"

test-spark: $(VENV)/built
	$(BIN)/python -m pytest -q -m spark

lint: $(VENV)/built
	cargo fmt --check
	cargo clippy --quiet --profile $(PROFILE) --all-targets --features arrow,serde -- -D warnings
	cargo clippy --quiet --profile $(PROFILE) --features python -- -D warnings
	$(BIN)/ruff check python tests/python benches examples
	$(BIN)/ruff format --check python tests/python benches examples
	$(BIN)/mypy --strict python
	$(BIN)/python -m mypy.stubtest magicbyte._core

format:
	cargo fmt
	$(BIN)/ruff check --fix --quiet python tests/python benches examples
	$(BIN)/ruff format python tests/python benches examples

# --- the rest -----------------------------------------------------------------------------------

bench: $(VENV)/requirements
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'aiokafka>=0.14'
	. $(BIN)/activate && maturin develop --quiet --release && rm -f $(VENV)/built
	$(BIN)/python benches/python/run.py
	$(BIN)/python benches/python/segments.py

bench-spark: $(VENV)/requirements
	. $(BIN)/activate && maturin develop --quiet --release && rm -f $(VENV)/built
	$(BIN)/python benches/python/spark_kafka.py

wheel: $(VENV)/requirements
	$(BIN)/maturin build --release

docs:
	cargo doc --no-deps --features arrow,serde

clean:
	rm -rf $(VENV) target $(OUT)
