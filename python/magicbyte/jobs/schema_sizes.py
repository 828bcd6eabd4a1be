"""The job of `magicbyte schemas sizes`: the same values as Avro, Protobuf and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypedDict

import pyarrow as pa

from magicbyte._core import DEFAULT_MAX_DECOMPRESSED_BYTES, RecordsBuilder
from magicbyte.errors import Error
from magicbyte.jobs.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.equivalent_schemas import as_avro, as_json, as_protobuf
from magicbyte.jobs.partitions import find_inputs
from magicbyte.log import PartitionLog
from magicbyte.schemas import framing
from magicbyte.schemas.decoding import SchemaFormat, decoder_of
from magicbyte.schemas.registry import Registry, SchemaNotFoundError

__all__ = ["DEFAULT_VALUES", "FormatSize", "SizesReport", "TopicSizes", "schema_sizes"]

DEFAULT_VALUES = 50_000
"""The number of values of a topic that are read."""
_ID = 1
"""Any id takes four bytes."""
_FORMATS: dict[SchemaFormat, tuple[Callable[[pa.Array], list[bytes]], bytes]] = {
    "avro": (as_avro, framing.write(_ID)),
    "protobuf": (as_protobuf, framing.write(_ID, [0])),
    "json": (as_json, framing.write(_ID)),
}
_HEADERS = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))


class FormatSize(TypedDict):
    """The size of the values in one format."""

    bytes: int
    """The bytes of the values with their framing."""
    zstd_bytes: int
    """The bytes of zstd batches that hold only these values, as many per batch as in the topic."""
    as_stored: bool
    """True if this is the topic's own format: the values are measured as they are."""


class TopicSizes(TypedDict):
    """The sizes of one topic."""

    topic: str
    values: int
    """The number of values that are compared."""
    left_out: int
    """The number of values that name no schema, or cannot be decoded."""
    batches: int
    formats: dict[SchemaFormat, FormatSize]
    error: str | None
    """The reason why there are no sizes, or None."""


class SizesReport(TypedDict):
    """The output of `magicbyte schemas sizes --json`."""

    topics: list[TopicSizes]
    problems: list[str]
    """Problems with reading the input."""


def schema_sizes(
    sources: Sequence[str],
    registry: Registry,
    *,
    choice: PartitionChoice = EVERYTHING,
    values: int = DEFAULT_VALUES,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> SizesReport:
    """Measures the values of each topic in the three formats.

    The first values of each topic are read, partition after partition. They include values of aborted
    transactions, but not nulls. The schema is the newest one that they name.

    Raises:
        RefusedError: if there is no partition, or a source is missing.
        RegistryError: if a live registry does not answer.

    """
    logs: dict[str, list[PartitionLog]] = {}
    for listing in find_inputs(sources, choice).listings:
        log = PartitionLog.of_listing(
            listing, mode="PERMISSIVE", max_decompressed_bytes=max_decompressed_bytes
        )
        logs.setdefault(log.topic, []).append(log)
    problems: list[str] = []
    topics = []
    for topic in sorted(logs):
        sample = _Sample()
        for log in logs[topic]:
            sample.read(log, values, problems)
        topics.append(_measured(topic, sample, registry))
    return SizesReport(topics=topics, problems=problems)


class _Sample:
    """Values with their headers, and where each batch ends."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.headers: list[list[dict[str, object]]] = []
        self.ends: list[int] = []

    def read(self, log: PartitionLog, most: int, problems: list[str]) -> None:
        batches = log.batches()
        for batch in batches:
            if len(self.values) >= most:
                break
            if batch.is_control:
                continue
            try:
                records = list(batch)
            except Error as error:
                problems.append(f"{log.path}: {error}")
                continue
            for record in records:
                if record.value is not None:
                    self.values.append(bytes(record.value))
                    headers = record.headers or ()
                    self.headers.append(
                        [{"key": key, "value": None if one is None else bytes(one)} for key, one in headers]
                    )
            self.ends.append(len(self.values))
        problems += [f"{log.path}/{one['segment']}: {one['message']}" for one in batches.problems]

    def batch(self) -> pa.RecordBatch:
        columns = {
            "value": pa.array(self.values, pa.binary()),
            "headers": pa.array(self.headers, _HEADERS),
        }
        return pa.record_batch(columns)


def _measured(topic: str, sample: _Sample, registry: Registry) -> TopicSizes:
    report = TopicSizes(
        topic=topic, values=0, left_out=len(sample.values), batches=len(sample.ends), formats={}, error=None
    )
    try:
        batch = sample.batch()
        stored, decoder = decoder_of(batch, registry)
        decoded = decoder.decode(batch)
        column = decoded.column(0)
        rows = [row for row, valid in enumerate(column.is_valid().to_pylist()) if valid]
        column = column.take(pa.array(rows, pa.int64()))
        if not pa.types.is_nested(column.type) and decoder.schema.field(0).type == pa.string():
            report["error"] = "the values are text, which has no other form"
            return report
        for format, (encode, prefix) in _FORMATS.items():
            if format == stored:
                payloads = [sample.values[row] for row in rows]
            else:
                payloads = [prefix + one for one in encode(column)]
            report["formats"][format] = FormatSize(
                bytes=sum(map(len, payloads)),
                zstd_bytes=sum(_zstd(one) for one in _batches(payloads, rows, sample.ends)),
                as_stored=format == stored,
            )
    except SchemaNotFoundError as error:
        report["error"] = str(error)
        return report
    except (Error, ValueError, OverflowError) as error:
        # A timestamp beyond Python's years, or a schema that cannot be used.
        report["error"] = str(error)
        report["formats"] = {}
        return report
    report["values"], report["left_out"] = len(rows), len(sample.values) - len(rows)
    return report


def _batches(payloads: list[bytes], rows: list[int], ends: list[int]) -> Iterable[list[bytes]]:
    """The payloads of `rows` by the batches that these are in."""
    start = 0
    for end in ends:
        stop = start
        while stop < len(rows) and rows[stop] < end:
            stop += 1
        if stop > start:
            yield payloads[start:stop]
        start = stop


def _zstd(values: list[bytes]) -> int:
    builder = RecordsBuilder(2, "zstd")
    for offset, value in enumerate(values):
        builder.append(offset, 0, None, value)
    return len(builder.build())
