"""Mutated batches and segments through every entry point of the Python package. Run as a program by
test_hostile.py, in its own process, so that a crash or exhausted memory shows in its exit code.

usage: hostile.py PARTITIONS SCRATCH FIRST_SEED LAST_SEED
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import resource
import sys
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow as pa
from magicbyte import LegacyBatch, PartitionLog, RecordBatch, _core
from magicbyte.cli import main

KINDS = [
    "v0_none", "v0_gzip", "v0_snappy", "v0_lz4", "v1_none", "v1_gzip", "v1_snappy", "v1_lz4", "v1_logappend",
    "v2_none", "v2_gzip", "v2_snappy", "v2_lz4", "v2_zstd", "v2_headers", "v2_nulls", "v2_txn",
]  # fmt: skip
LIMIT = 1 << 20
# On top of the memory that is mapped after all imports. A decompression bomb or an unchecked count needs
# more.
MEMORY = 512 << 20
INTERESTING = [0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF]

# A record as every entry point returns it, and the parts of an error.
Row = tuple[int, int, bytes | None, bytes | None]
Failure = tuple[type, str, int | None, int | None, int | None, str | None]


def frames(data: bytes) -> list[bytes]:
    """The batches of a valid segment."""
    return [batch.to_bytes() for batch in magicbyte.read_batches(data)]


def sealed(batch: bytes) -> bytes:
    """The batch with its length and CRC corrected."""
    if len(batch) < 26:
        return batch
    changed = bytearray(batch)
    changed[8:12] = (len(batch) - 12).to_bytes(4, "big")
    if batch[16] == 2:
        changed[17:21] = magicbyte.crc32c(changed[21:]).to_bytes(4, "big")
    else:
        changed[12:16] = zlib.crc32(changed[16:]).to_bytes(4, "big")
    return bytes(changed)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A few changed bytes, bits, runs and moved pieces."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) or 1)
        size = chance.randint(1, 16)
        match chance.randrange(7):
            case 0:
                changed[at : at + 1] = bytes([chance.choice(INTERESTING)])
            case 1:
                changed[at : at + 1] = bytes([chance.randrange(256)])
            case 2:
                changed[at : at + size] = bytes([chance.choice(INTERESTING)]) * size
            case 3:
                del changed[at : at + size]
            case 4:
                changed[at:at] = chance.randbytes(size)
            case 5:
                changed[at:at] = changed[chance.randrange(len(changed) or 1) :][:size]
            case _:
                del changed[at:]
    return bytes(changed)


def attempt(read: Callable[[], list[Row]]) -> list[Row] | Failure:
    """The entry point's rows, or the one kind of error that is allowed."""
    try:
        return read()
    except magicbyte.Error as error:
        return (type(error), error.kind, error.position, error.base_offset, error.record_index, error.field)


def by_records(batch: RecordBatch | LegacyBatch) -> list[Row]:
    rows = []
    for record in batch:
        headers = [(key, None if value is None else bytes(value)) for key, value in record.headers]
        assert len(headers) == len(record.headers_raw)
        with contextlib.suppress(magicbyte.Error):
            _ = record.control
        _ = (record.timestamp_type, record.sequence, record.attributes, repr(record))
        views = (record.key, record.value)
        key, value = (None if view is None else bytes(view) for view in views)
        assert (key, value) == (record.key_bytes, record.value_bytes)
        rows.append((record.offset, record.timestamp, key, value))
    return rows


def by_columns(batch: RecordBatch | LegacyBatch) -> list[Row]:
    columns = batch.columns()
    return list(zip(columns.offsets, columns.timestamps, columns.keys, columns.values, strict=True))


def arrow_rows(table: pa.Table | pa.RecordBatch) -> list[Row]:
    # Records give a missing timestamp as -1, Arrow as NULL.
    timestamps = table["timestamp"].cast(pa.int64()).fill_null(-1).to_pylist()
    rows = zip(
        table["offset"].to_pylist(),
        timestamps,
        table["key"].to_pylist(),
        table["value"].to_pylist(),
        strict=True,
    )
    return list(rows)


def by_arrow(batch: RecordBatch | LegacyBatch) -> list[Row]:
    return arrow_rows(pa.record_batch(batch.to_arrow()))


def by_views(batch: RecordBatch | LegacyBatch) -> list[Row]:
    arrow = pa.record_batch(batch.to_arrow(views=True))
    arrow.validate(full=True)
    return arrow_rows(arrow)


def read_header(batch: RecordBatch | LegacyBatch) -> None:
    """Every field of the header."""
    for name in dir(type(batch)):
        if not name.startswith("_") and name not in ("columns", "to_arrow"):
            with contextlib.suppress(magicbyte.Error):
                value = getattr(batch, name)
                _ = value() if callable(value) else value
    assert batch.is_valid() in (True, False)
    _ = repr(batch)


def read_as_bytes(data: bytes, *, check_crcs: bool) -> None:
    """Each entry point gives the same records of a batch, or the same error."""
    whole: list[Row] | None = []

    def walk() -> list[Row]:
        nonlocal whole
        options = {"check_crcs": check_crcs, "max_decompressed_bytes": LIMIT}
        for batch in magicbyte.read_batches(bytearray(data), **options):
            read_header(batch)
            records = attempt(lambda batch=batch: by_records(batch))
            assert attempt(lambda batch=batch: by_columns(batch)) == records
            assert attempt(lambda batch=batch: by_arrow(batch)) == records
            assert attempt(lambda batch=batch: by_views(batch)) == records
            if whole is not None and isinstance(records, list):
                whole += [] if batch.is_control else records
            else:
                whole = None
        return []

    framed = attempt(walk)
    batches = magicbyte.read_batches(data, check_crcs=check_crcs, max_decompressed_bytes=LIMIT)
    messages = set()
    for stream in (batches, batches.to_arrow(views=True), batches.to_arrow(threads=2)):
        try:
            table = pa.table(stream)
        except (pa.ArrowException, OSError) as error:
            assert whole is None or framed, "only the stream fails"
            messages.add(str(error))
        else:
            assert not framed
            assert arrow_rows(table) == whole
            messages.add("")
    assert len(messages) == 1, "the streams differ"
    for name in ("magic", "headers"):
        with contextlib.suppress(pa.ArrowException, OSError):
            pa.table(batches.to_arrow([name], start_offset=1, end_timestamp=2**40))


def chunked_rows(directory: Path) -> list[int]:
    """The offsets that the job layer delivers."""
    listing = _core.list_partition(str(directory))
    surveys = [_core.survey_segment(json.dumps(segment)) for segment in json.loads(listing)["segments"]]
    plan = _core.plan_partition(listing, surveys, chunk_bytes=1)
    offsets: list[int] = []
    results = []
    for chunk in json.loads(plan)["chunks"]:
        decoder = _core.ChunkDecoder(
            json.dumps(chunk), columns=["offset", "timestamp", "key", "value", "headers"]
        )
        for batch in decoder:
            offsets += pa.record_batch(batch)["offset"].to_pylist()
        for rows in (decoder.take_batches(), decoder.take_problems()):
            _ = None if rows is None else pa.record_batch(rows)
        results.append(decoder.result())
    assert json.loads(_core.reconcile(plan, results))["balanced"]
    return offsets


def read_as_partition(data: bytes, directory: Path, chance: random.Random) -> None:
    """The facade and the job layer give the same offsets; the other ways to read do not crash."""
    (directory / "00000000000000000000.log").write_bytes(data)
    log = PartitionLog(directory, mode="PERMISSIVE")
    records = log.records()
    offsets = [record.offset for record in records]
    _ = records.problems
    sums = log.verify()
    assert sums.balanced
    for _ in log.records(
        chance.choice([None, 0, 5, 2**62]), chance.choice([None, 0, 2**62]), "read_committed"
    ):
        pass
    assert list(chunked_rows(directory)) == offsets
    strict = PartitionLog(directory)
    attempt(lambda: [(record.offset, 0, None, None) for record in strict.records()])
    for command in ("records", "dump"):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = main([command, str(directory)])
        assert code in (0, 1), f"{command} ends with {code}: {printed.getvalue()}"
        assert "Traceback" not in printed.getvalue()


def bound_memory() -> None:
    """Allows at most MEMORY more from here on."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def run(partitions: Path, scratch: Path, seeds: range) -> None:
    segments: dict[str, bytes] = {}
    for name in KINDS:
        sizes = [path for path in (partitions / name).glob("*.log") if path.stat().st_size]
        segments[name] = b"".join(frames(min(sizes, key=lambda path: path.stat().st_size).read_bytes())[:6])
    directory = scratch / "t-0"
    directory.mkdir()
    # Finish late imports and start all threads before memory is bounded.
    read_as_bytes(segments["v2_none"], check_crcs=True)
    read_as_partition(segments["v2_none"], directory, random.Random(0))
    bound_memory()
    for seed in seeds:
        chance = random.Random(seed)
        segment = segments[chance.choice(KINDS)]
        batch = chance.choice(frames(segment))
        broken = mutated(batch, chance)
        # With a valid checksum the damage reaches the parsers; the original magic decides which field to
        # correct.
        resealed = sealed(broken[:16] + batch[16:17] + broken[17:])
        damaged = mutated(segment, chance)
        inputs: list[Any] = [broken, resealed, damaged]
        try:
            for data in inputs:
                read_as_bytes(data, check_crcs=chance.random() < 0.5)
            read_as_partition(
                chance.choice([damaged, segment + resealed, resealed + segment]), directory, chance
            )
        except BaseException:
            traceback.print_exc()
            print("seed", seed, [data.hex() for data in inputs], file=sys.stderr)
            raise SystemExit(1) from None


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]), range(int(sys.argv[3]), int(sys.argv[4])))
