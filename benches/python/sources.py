"""The code that each part's figures depend on, as paths of the repository.

A figure whose sources have changed since it was measured counts as not measured. Its peers, its data and the
versions of dependencies are no sources: they are named by its run.
"""

FORMAT = ("src",)
LOG = (*FORMAT, "crates/magicbyte-log")
ARROW = (*LOG, "crates/magicbyte-arrow")
# What a loop over batches or columns calls in Python.
RECORDS = (
    "arrow.rs",
    "arrow_stream.rs",
    "batch.rs",
    "indexed_batch.rs",
    "log.rs",
    "objects",
    "record.rs",
    "view.rs",
)
BINDINGS = tuple(f"crates/magicbyte-python/src/{name}" for name in RECORDS)
LIVE = tuple(f"crates/magicbyte-python/src/{name}.rs" for name in ("live", "live_in_turn"))
BUILDERS = ("append.rs", "append_arguments.rs", "builder.rs")
BUILDING = tuple(f"crates/magicbyte-python/src/{name}" for name in BUILDERS)
SCANS = tuple(
    f"python/magicbyte/{name}.py"
    for name in ("open_partition", "predicates", "scanning", "table", "table_options")
)
PAYLOADS = ("crates/magicbyte-json", "crates/magicbyte-schema", "python/magicbyte/schema")
JOBS = ("crates/magicbyte-python", "python/magicbyte/jobs")
PROGRAMS = ("benches/rust/src",)

SOURCES: dict[str, tuple[str, ...]] = {
    "Read in Rust": (*FORMAT, *PROGRAMS),
    "Read in Python": (*ARROW, *BINDINGS),
    "Two threads": (*ARROW, *BINDINGS),
    "Query": (*ARROW, *BINDINGS, *SCANS),
    "Lines": (*ARROW, *BINDINGS, "crates/magicbyte-json", "crates/magicbyte-python/src/lines.rs"),
    "Write in Rust": (*FORMAT, *PROGRAMS),
    "Write in Python": (*FORMAT, *BUILDING),
    "Convert": (*LOG, *PROGRAMS),
    "Segments": (*LOG, *PROGRAMS),
    "Validate appends": (*FORMAT, "crates/magicbyte-broker", *PROGRAMS),
    "Compacting": (*LOG, *PROGRAMS),
    "Laboratory": (*LOG, "crates/magicbyte-lab", *JOBS, "python/magicbyte/lab.py"),
    "Tables": (*ARROW, *JOBS, "python/magicbyte/lake"),
    "Stores": (*ARROW, "crates/magicbyte-object-store", *JOBS, "python/magicbyte/storage"),
    "Serving": (*LOG, *(f"crates/magicbyte-{name}" for name in ("broker", "protocol", "serve"))),
    "Captures": (*LOG, "crates/magicbyte-protocol", "python/magicbyte/wire.py"),
    "Internal topics": (*LOG, "crates/magicbyte-protocol", *JOBS, "python/magicbyte/internal_topics"),
    "Schemas": (*ARROW, *PAYLOADS, "crates/magicbyte-python/src/schema_decoder.rs"),
    "Spark": (*ARROW, *PAYLOADS, *JOBS, "python/magicbyte/spark"),
    "Live": (*ARROW, "crates/magicbyte-client", "crates/magicbyte-protocol", *BINDINGS, *LIVE),
    "Backup": (*LOG, "crates/magicbyte-client", "crates/magicbyte-protocol", *JOBS),
    "Replicas": (*ARROW, *JOBS),
    "Clients": (*FORMAT, "crates/magicbyte-protocol", *BINDINGS, *BUILDING, "examples"),
}
