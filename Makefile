# The targets. Everything is installed into .venv; nothing outside this directory is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= out
# `run` and `test` share one build: quick to make, nearly as fast as a release wheel.
PROFILE ?= ci
# The tests and the bindings have one set of features, so that each crate is built once; these two would change it.
APART := --exclude magicbyte-benches --exclude magicbyte-object-store
# Brokers, stores and Spark can be late on a busy machine: a test that fails once runs again. One that passes then is
# listed as RERUN in the summary, and has to be mended. Files stay together: they share brokers and sessions.
TWO := --numprocesses 2 --dist loadfile
REAL_PARTS := --reruns 1 -rR $(TWO)

export PYSPARK_PYTHON := $(abspath $(BIN))/python
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)

.PHONY: help run check browser clients test test-rust test-python test-spark test-wheel test-interop newest judged corpus licenses messages lint format fuzz bench bench-spark study wheel docs docs-site inspector test-inspector clean \
  test-features test-msrv test-minimal test-targets test-reproducible test-roots smoke deny semver miri lint-workflows sdist check-dist publish-dry-run release-check publish FORCE

help:
	@echo "make run      build, install into $(VENV), ingest samples/ on embedded Spark, print the result"
	@echo "make check    format, lint and the unit tests near what has changed since the last commit"
	@echo "make test     lint and every test: Rust, Python, Spark, Kafka's own classes, a real broker"
	@echo "make test-wheel  a part of it: the wheel in bare environments, each extra, oldest and newest versions"
	@echo "make browser  install Chromium, which a test opens pages in, if it is missing (Debian, as root)"
	@echo "make clients  install kcat and tshark, for test-interop, if they are missing (Debian, as root)"
	@echo "make newest   Kafka's newest release as the judge: what differs in its messages and verdicts"
	@echo "make judged   a part of it: only what asks Kafka's classes, of one version: JUDGES=4.3.1"
	@echo "make corpus   rebuild tests/corpus with Kafka's verdicts"
	@echo "make messages rewrite the table of Kafka's messages and records from its jars, and their types"
	@echo "make licenses rewrite THIRD-PARTY-LICENSES from Cargo.lock, for the wheel"
	@echo "make lint     rustfmt, clippy, rustdoc, ruff, mypy, stubtest"
	@echo "make format   rustfmt and ruff, in place"
	@echo "make fuzz     each fuzz target for SECONDS=60, or one: make fuzz TARGET=salvage SECONDS=600"
	@echo "make bench    speed against the peers on the same bytes; writes docs/benchmarks.md (QUICK=1: 5 minutes)"
	@echo "make study    what each format and idea for the next one costs; writes docs/study.md"
	@echo "make bench-spark  the same against Spark's own Kafka source and a real broker"
	@echo "make docs     the Rust API's pages in target/doc"
	@echo "make docs-site  the documentation's pages in target/site"
	@echo "make inspector  the page that explains a segment byte by byte: target/inspector/inspector.html"
	@echo "make test-inspector  that page in Chromium, on every segment of the tests and on damage"
	@echo "make test-features  every crate with each of its features alone"
	@echo "make test-msrv  the same with the lowest Rust that Cargo.toml declares"
	@echo "make test-minimal  the lowest versions of crates that the manifests allow"
	@echo "make deny     licences, sources and versions of crates (DENY=advisories: known vulnerabilities)"
	@echo "make semver   what has changed in the Rust API since the last release"
	@echo "make miri     the format's own tests in Rust's interpreter"
	@echo "make lint-workflows  actionlint and zizmor"
	@echo "make test-targets  what compiles for macOS and Windows"
	@echo "make wheel    the release wheel in target/wheels, or that of another platform: TARGET=aarch64-unknown-linux-gnu"
	@echo "make test-reproducible  the wheel twice, in two directories: the same bytes"
	@echo "make smoke    the wheels on other interpreters: INTERPRETERS='python3.11 python3.15'"
	@echo "make test-roots  the wheels on the oldest glibc, musl, aarch64 and the newest Pythons (Debian, as root)"
	@echo "make sdist    the source distribution in target/wheels"
	@echo "make check-dist  what an index of packages would refuse or show wrongly"
	@echo "make publish-dry-run  every crate in order, as far as the registry"
	@echo "make release-check  what stands in the way of a release: TAG=v1.2.3 (TAGGED=1: also of its commit)"

# --- set-up -------------------------------------------------------------------------------------

$(BIN)/python:
	@scripts/prerequisites "$(PYTHON)" java
	$(PYTHON) -m venv $(VENV)

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# The Python requirements change rarely, the Rust sources often, so each has its stamp. The main job needs fewer packages
# than the tests.
$(VENV)/runtime: pyproject.toml | $(BIN)/python
	@scripts/prerequisites "$(PYTHON)" java
	@echo "Installing the Python packages of the main job"
	@$(BIN)/python scripts/requirements.py pyproject.toml build cli spark > $(VENV)/runtime.txt
	@$(PIP) -r $(VENV)/runtime.txt
	@touch $@

$(VENV)/requirements: $(VENV)/runtime
	@echo "Installing the Python packages of the tests"
	@$(BIN)/python scripts/requirements.py pyproject.toml dev docs > $(VENV)/dev.txt
	@$(PIP) -r $(VENV)/dev.txt
	@touch $@

$(VENV)/release $(VENV)/zig: $(VENV)/%: pyproject.toml | $(BIN)/python
	@$(BIN)/python scripts/requirements.py pyproject.toml $* > $@.txt
	@$(PIP) -r $@.txt
	@touch $@

RUST := Cargo.toml Cargo.lock $(shell find src crates -name '*.rs' -o -name '*.json' -o -name '*.proto' -o -name '*.toml') \
  $(wildcard python/magicbyte/_stubs/*.pyi)
$(VENV)/built: $(VENV)/runtime $(RUST) pyproject.toml
	@echo "Building the Rust side (the first time, its dependencies take minutes)"
	@. $(BIN)/activate && maturin develop --profile $(PROFILE) > $(VENV)/maturin.log || { cat $(VENV)/maturin.log; exit 1; }
	@touch $@

# --- the main job -------------------------------------------------------------------------------

run: $(VENV)/built
	$(BIN)/magicbyte ingest --engine spark --overwrite samples $(OUT)
	@$(BIN)/python examples/show_tables.py $(OUT)

# --- tests --------------------------------------------------------------------------------------

# Installed in the system, not in .venv: a test opens the pages of `magicbyte explain`.
browser:
	@scripts/package chromium chromium chromium-browser google-chrome

# Also installed in the system: a client of Kafka in C, and what else decodes captures of its protocol.
clients:
	@scripts/package kcat kcat
	@scripts/package tshark tshark

check: $(VENV)/built $(VENV)/requirements
	$(BIN)/python scripts/check.py --profile $(PROFILE)

test: lint test-rust test-python test-spark test-wheel test-interop

test-rust:
	@scripts/prerequisites "$(PYTHON)"
	cargo test --quiet --profile $(PROFILE) --workspace $(APART) --tests
	cargo test --quiet --profile $(PROFILE) --workspace $(APART) --doc
	cargo test --quiet --profile $(PROFILE) --no-default-features --tests
	cargo test --quiet --package magicbyte-object-store

test-python: $(VENV)/built $(VENV)/requirements browser
	$(BIN)/python -m pytest -q -m "not spark and not inspector" --numprocesses 2 --durations 12

# Not a part of `test`: the page needs a target of rustup's, and zig.
test-inspector: inspector $(VENV)/built $(VENV)/requirements browser
	$(BIN)/python -m pytest -q -m inspector

test-spark: $(VENV)/built $(VENV)/requirements
	$(BIN)/python -m pytest -q -m spark $(REAL_PARTS)

# Tests in users' environments what the tests above check in one. The wheel is built with the profile of
# `run`.
test-wheel: $(VENV)/built $(VENV)/requirements
	rm -rf target/wheel
	. $(BIN)/activate && maturin build --quiet --profile $(PROFILE) --out target/wheel
	$(BIN)/python scripts/test_wheel.py target/wheel/*.whl target/wheel/environments

include tests/interop/versions.mk
export JUDGES BUILDS OLD
NEWEST := $(firstword $(JUDGES))
# Written only if a version has changed, also one that is given on the command line.
VERSIONS := target/kafka-versions
$(VERSIONS): FORCE
	@mkdir -p $(@D)
	@echo $(JUDGES) $(BUILDS) $(OLD) | cmp --silent - $@ || echo $(JUDGES) $(BUILDS) $(OLD) > $@
FORCE:

# Whole brokers: the judges with their tools, and an old one with its ZooKeeper.
BROKER := target/kafka-broker
$(BROKER)/fetched: tests/interop/broker/pom.xml tests/interop/old_broker/pom.xml $(VERSIONS)
	@scripts/prerequisites "$(PYTHON)" java maven
	for version in $(JUDGES); do mvn -q -B -f $< dependency:copy-dependencies -Dkafka.version=$$version || exit 1; done
	mvn -q -B -f $(word 2,$^) dependency:copy-dependencies -Dkafka.version=$(OLD)
	mvn -q -B -f $(word 2,$^) dependency:copy-dependencies -Dkafka.version=$(OLDEST) -Dscala.version=$(OLDEST_SCALA)
	touch $@

# Our clients, and programs over the broker's own classes: the same sources for each judge.
$(BROKER)/%/built: $(BROKER)/fetched $(wildcard tests/interop/broker/*.java) tests/interop/archive_classes.py
	mkdir -p $(@D)/classes
	javac -cp '$(@D)/jars/*' -d $(@D)/classes $(wildcard tests/interop/broker/*.java)
	jar cf $(@D)/classes.jar -C $(@D)/classes .
	$(PYTHON) tests/interop/archive_classes.py $*
	touch $@

INTEROP := target/interop
RECORDS := $(INTEROP)/records-$(NEWEST)
jars = mvn -q -B -f tests/interop/oracle/pom.xml dependency:copy-dependencies -Dkafka.version=$(1) \
	-DincludeScope=runtime -DoutputDirectory=$(abspath $(INTEROP))/lib-$(1)

$(INTEROP)/fetched: tests/interop/oracle/pom.xml tests/interop/records/pom.xml benches/java/connector-pom.xml $(VERSIONS)
	@scripts/prerequisites "$(PYTHON)" java maven
	$(foreach version,$(JUDGES) $(BUILDS) $(OLD),$(call jars,$(version)) &&) true
	mvn -q -B -f benches/java/connector-pom.xml dependency:copy-dependencies -DincludeScope=runtime \
	  -DoutputDirectory=$(abspath $(INTEROP))/lib-spark
	mvn -q -B -f tests/interop/records/pom.xml dependency:copy-dependencies -Dkafka.version=$(NEWEST) \
		-DexcludeTransitive -DoutputDirectory=$(abspath $(RECORDS))
	touch $@

$(INTEROP)/built: $(INTEROP)/fetched $(wildcard tests/interop/oracle/*.java)
	for version in $(JUDGES); do javac -d $(INTEROP)/oracle-$$version -cp "$(INTEROP)/lib-$$version/*" \
	  tests/interop/oracle/Oracle.java || exit 1; done
	javac -d $(INTEROP)/builder -cp '$(INTEROP)/lib-$(BUILDS)/*' tests/interop/oracle/Builder.java
	javac -d $(INTEROP)/validator -cp '$(INTEROP)/lib-$(BUILDS)/*' tests/interop/oracle/Validator.java
	javac -d $(INTEROP)/messages -cp '$(INTEROP)/lib-$(BUILDS)/*' tests/interop/oracle/Messages.java
	touch $@

# A schema registry, and the authority on Avro.
REGISTRY := target/registry
$(REGISTRY)/fetched: tests/interop/registry/pom.xml
	@scripts/prerequisites "$(PYTHON)" java maven
	mvn -q -B -f $< dependency:copy-dependencies dependency:unpack
	touch $@

$(REGISTRY)/built: $(REGISTRY)/fetched $(wildcard tests/interop/registry/*.java)
	javac -d $(REGISTRY)/classes -cp '$(REGISTRY)/lib/*' $(wildcard tests/interop/registry/*.java)
	touch $@

# A Hadoop file system.
HDFS := target/hdfs
$(HDFS)/fetched: tests/interop/hdfs/pom.xml
	@scripts/prerequisites "$(PYTHON)" java maven
	mvn -q -B -f $< dependency:copy-dependencies
	touch $@

$(HDFS)/built: $(HDFS)/fetched $(wildcard tests/interop/hdfs/*.java)
	javac -d $(HDFS)/classes -cp '$(HDFS)/lib/*' $(wildcard tests/interop/hdfs/*.java)
	touch $@

test-interop: $(VENV)/built $(VENV)/requirements clients $(INTEROP)/built $(JUDGES:%=$(BROKER)/%/built) $(REGISTRY)/built $(HDFS)/built
	$(BIN)/python scripts/messages.py --check $(MESSAGE_JARS) $(RECORDS)/*.jar
	cargo build --quiet --profile ci --workspace $(APART) --example proxy
	$(BIN)/python -m pytest -q tests/interop --durations 12 $(REAL_PARTS)

# Not a part of `test`: a release of Kafka is news. Its classes judge alone, with what is theirs of every oracle.
ORACLES := $(addprefix tests/interop/test_,verdicts.py corpus_verdicts.py builder.py append.py simulator.py state.py compact.py \
  broker_facts.py messages.py)
NEW := target/newest
newest: $(VENV)/built $(VENV)/requirements
	rm -rf $(NEW)
	mvn -q -B -f tests/interop/oracle/pom.xml dependency:copy-dependencies '-Dkafka.version=[4,)' \
	  -DincludeArtifactIds=kafka-clients -DoutputDirectory=$(abspath $(NEW))
	$(MAKE) --no-print-directory judged JUDGES=$$(ls $(NEW) | sed 's/kafka-clients-\(.*\)\.jar/\1/')

judged: $(INTEROP)/built $(JUDGES:%=$(BROKER)/%/built)
	@echo "Kafka $(JUDGES)"
	-$(BIN)/python scripts/messages.py --check $(MESSAGE_JARS) $(RECORDS)/*.jar
	$(BIN)/python -m pytest -q --tb=short $(ORACLES) $(REAL_PARTS)

MESSAGE_JARS = $(foreach one,$(NEWEST) $(BUILDS),$(INTEROP)/lib-$(one)/kafka-clients-$(one).jar)
messages: $(INTEROP)/fetched
	$(PYTHON) scripts/messages.py $(MESSAGE_JARS) $(RECORDS)/*.jar
	$(PYTHON) scripts/message_types.py

corpus: $(VENV)/built $(VENV)/requirements $(INTEROP)/built
	$(BIN)/python tests/interop/make_corpus.py

licenses:
	$(PYTHON) scripts/licenses.py

lint: $(VENV)/built $(VENV)/requirements
	$(BIN)/python scripts/licenses.py --check
	cargo fmt --check
	cargo fmt --check --manifest-path benches/peers/rust/Cargo.toml
	cargo clippy --quiet --profile $(PROFILE) --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --profile $(PROFILE) --workspace --no-deps
	for codec in "" gzip snappy lz4 zstd; do \
	  cargo clippy --quiet --profile $(PROFILE) --package magicbyte --no-default-features --features "$$codec" -- -D warnings || exit 1; \
	done
	$(BIN)/python scripts/test_packages.py --profile $(PROFILE)
	$(BIN)/ruff check python tests/python tests/interop benches examples scripts
	$(BIN)/ruff format --check python tests/python tests/interop benches examples scripts
	$(BIN)/mypy --strict python
	$(BIN)/python scripts/message_types.py --check
	MYPYPATH=examples $(BIN)/mypy --strict --package asyncio_client
	$(BIN)/python scripts/stubtest.py

format:
	cargo fmt
	cargo fmt --manifest-path benches/peers/rust/Cargo.toml
	$(BIN)/ruff check --fix --quiet python tests/python tests/interop benches examples scripts
	$(BIN)/ruff format python tests/python tests/interop benches examples scripts

# --- what workflows check besides ---------------------------------------------------------------

CARGO_TOOLS := $(abspath $(VENV))/cargo/bin
cargo-deny := 0.20.2
cargo-fuzz := 0.13.2
cargo-hack := 0.6.46
cargo-semver-checks := 0.51.0
$(CARGO_TOOLS)/%: | $(BIN)/python
	cargo install --quiet --locked --root $(VENV)/cargo $*@$($*)

# Each has a target directory of its own, so that builds of other kinds stay as they are.
test-features: $(CARGO_TOOLS)/cargo-hack
	CARGO_TARGET_DIR=target/features $< hack check --quiet --locked --workspace --each-feature

MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"$$/\1/p' Cargo.toml)
test-msrv: $(CARGO_TOOLS)/cargo-hack
	rustup toolchain install $(MSRV) --profile minimal --no-self-update
	RUSTUP_TOOLCHAIN=$(MSRV) CARGO_TARGET_DIR=target/msrv $< hack check --quiet --locked --workspace --each-feature

# In a copy, since Cargo.lock would change.
test-minimal:
	rm -rf target/minimal && mkdir -p target/minimal
	git ls-files -z '*.toml' '*.rs' '*.json' '*.proto' '*.pyi' '*.md' | xargs -0 cp --parents --target-directory target/minimal
	cd target/minimal && RUSTC_BOOTSTRAP=1 cargo update --quiet -Z direct-minimal-versions
	cd target/minimal && CARGO_TARGET_DIR=../minimal-build cargo check --quiet --locked --workspace --all-features

# Zig is the C compiler of the codecs; nothing is linked, so that no system of the target is needed.
TARGETS_CHECKED := x86_64-apple-darwin aarch64-apple-darwin x86_64-pc-windows-gnu
test-targets: $(VENV)/zig
	rustup target add $(TARGETS_CHECKED)
	. $(BIN)/activate && for target in $(TARGETS_CHECKED); do \
	  CARGO_TARGET_DIR=target/targets cargo-zigbuild check --quiet --locked --workspace --all-features --target $$target || exit 1; \
	done

DENY ?= licenses bans sources
deny: $(CARGO_TOOLS)/cargo-deny
	$< --locked check $(DENY)

RELEASED = $(shell git describe --tags --abbrev=0 --match 'v*' 2>/dev/null)
semver: $(CARGO_TOOLS)/cargo-semver-checks
	$(if $(RELEASED),CARGO_TARGET_DIR=target/semver $< semver-checks --workspace --baseline-rev $(RELEASED), \
	  @echo "No release yet: there is nothing to compare with")

# Codecs are left out because they are C, and tests over all lengths because each takes the interpreter minutes.
miri:
	rustup toolchain install nightly --profile minimal --component miri --component rust-src --no-self-update
	CARGO_TARGET_DIR=target/miri MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=4 \
	  cargo +nightly miri test --quiet --package magicbyte --no-default-features --lib -- --skip checksum --skip output_buffer

ACTIONLINT := $(BIN)/actionlint
$(ACTIONLINT): | $(BIN)/python
	GOBIN=$(abspath $(BIN)) go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

lint-workflows: $(ACTIONLINT) $(VENV)/release
	$(ACTIONLINT)
	$(BIN)/zizmor --offline .github

# --- fuzzing: on stable Rust, so without sanitizers -----------------------------------------------

SECONDS ?= 60
TARGET ?=
TARGETS = $(or $(TARGET),$(patsubst fuzz/fuzz_targets/%.rs,%,$(wildcard fuzz/fuzz_targets/*.rs)))

# New finds go to fuzz/target; the corpus is only read.
fuzz: $(CARGO_TOOLS)/cargo-fuzz
	for target in $(TARGETS); do \
	  mkdir -p fuzz/target/corpus/$$target && \
	  $(CARGO_TOOLS)/cargo-fuzz fuzz run --sanitizer none $$target fuzz/target/corpus/$$target fuzz/corpus/$$target \
	    -- -max_total_time=$(SECONDS) -rss_limit_mb=512 -timeout=10 -print_final_stats=1 || exit 1; \
	done

# --- the rest -----------------------------------------------------------------------------------

QUICK ?=
# The Python parts measure the wheel that is released; each part builds whatever else it needs.
measured = $(BIN)/python scripts/build_wheel.py --into $(BIN)/python && rm -f $(VENV)/built
bench: $(VENV)/requirements
	$(measured)
	$(BIN)/python benches/python/run.py $(if $(QUICK),--quick)

bench-spark: $(VENV)/requirements
	$(measured)
	$(BIN)/python benches/python/spark_kafka.py
	$(BIN)/python benches/python/spark_typed.py
	$(BIN)/python benches/python/spark_live.py
	$(BIN)/python benches/python/ingest.py

study: $(VENV)/requirements
	$(measured)
	PROFILE=release $(BIN)/python benches/python/study.py

# --- releases -----------------------------------------------------------------------------------

wheel:
	$(PYTHON) scripts/build_wheel.py $(TARGET)

test-reproducible:
	$(PYTHON) scripts/reproducible.py $(TARGET)

# Wheels in target/wheels on these interpreters, which have nothing else installed.
INTERPRETERS ?= $(PYTHON)
smoke:
	$(PYTHON) scripts/smoke_wheel.py $(INTERPRETERS)

ROOTS := target/roots
test-roots: $(VENV)/release
	scripts/roots $(ROOTS)
	$(PYTHON) scripts/smoke_wheel.py "chroot $(ROOTS)/bullseye /opt/python/bin/python3" "chroot $(ROOTS)/musl /opt/python/bin/python3" \
	  "chroot $(ROOTS)/sid python3.14" "chroot $(ROOTS)/sid python3.15" \
	  "qemu-aarch64-static -L $(ROOTS)/arm64 $(ROOTS)/arm64/usr/bin/python3.11"

sdist: $(VENV)/runtime
	$(BIN)/maturin sdist --out target/wheels

check-dist: $(VENV)/release
	$(BIN)/python scripts/check_dist.py target/wheels

publish-dry-run:
	CARGO_TARGET_DIR=target/publish cargo publish --workspace --dry-run --locked

release-check:
	@$(PYTHON) scripts/release.py "$(TAG)" $(if $(TAGGED),--tagged)

publish:
	cargo publish --workspace --locked --no-verify

# --- documents ----------------------------------------------------------------------------------

docs:
	cargo doc --workspace --no-deps

docs-site: $(VENV)/built $(VENV)/requirements inspector
	$(BIN)/python scripts/docs_site.py

inspector: $(VENV)/zig
	$(BIN)/python scripts/inspector.py

clean:
	rm -rf $(VENV) target $(OUT)
