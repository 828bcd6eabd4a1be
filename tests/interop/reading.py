"""The same verdict from magicbyte, and the comparison of verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import magicbyte

# The header fields of a batch, in order.
FACTS = (
    "magic", "baseOffset", "lastOffset", "sizeInBytes", "crc", "compression", "timestampType", "maxTimestamp",
    "deleteHorizonMs", "partitionLeaderEpoch", "producerId", "producerEpoch", "baseSequence", "lastSequence",
    "isTransactional", "isControl", "count",
)  # fmt: skip

TYPES = ["CreateTime", "LogAppendTime"]


@dataclass
class Difference:
    """What the two disagree on."""

    text: str
    kafka: dict[str, Any]
    """The batch as Kafka read it, or the whole verdict where the framing differs."""
    ours: dict[str, Any]


def read(data: bytes) -> dict[str, Any]:
    """The verdict in the oracle's form: batches with header and records or error, the bytes framed, the
    framing's error. In addition, `bytes` has each batch as it is stored.
    """
    batches = magicbyte.read_batches(data, allow_partial=True)
    found: list[dict[str, Any]] = []
    framed = 0
    error = None
    try:
        for batch in batches:
            framed += batch.size_in_bytes
            found.append(_batch(batch))
    except magicbyte.Error as e:
        error = f"{e.kind}: {e}"
    return {"batches": found, "framed": framed, "error": error}


def _batch(batch: magicbyte.RecordBatch | magicbyte.LegacyBatch) -> dict[str, Any]:
    records: list[Any] = []
    error = None
    try:
        records = [_record(record) for record in batch]
    except magicbyte.Error as e:
        error = f"{e.kind}: {e}"
    return {"header": _header(batch), "records": records, "error": error, "bytes": batch.to_bytes()}


def _header(batch: magicbyte.RecordBatch | magicbyte.LegacyBatch) -> list[Any]:
    def readable(name: str) -> Any:
        try:
            return getattr(batch, name)
        except magicbyte.Error:
            return None

    def number(name: str) -> int:
        value = readable(name)
        return -1 if value is None else value

    codec = readable("compression")
    return [
        batch.magic,
        readable("base_offset"),
        batch.last_offset,
        batch.size_in_bytes,
        batch.crc,
        None if codec is None else int(codec),
        int(batch.timestamp_type),
        batch.max_timestamp,
        batch.delete_horizon_ms,
        # Where a magic has no such field, Kafka returns -1, and this library None.
        number("partition_leader_epoch"),
        number("producer_id"),
        number("producer_epoch"),
        number("base_sequence"),
        number("last_sequence"),
        batch.is_transactional,
        batch.is_control,
        # Kafka does not count the records of legacy batches.
        batch.record_count if batch.magic == 2 else None,
    ]


def _record(record: magicbyte.Record) -> list[Any]:
    def text(data: bytes | None) -> str | None:
        return None if data is None else data.hex()

    return [
        record.offset,
        record.timestamp,
        int(record.timestamp_type),
        text(record.key_bytes),
        text(record.value_bytes),
        [[text(key), text(value)] for key, value in record.headers_raw],
        -1 if record.sequence is None else record.sequence,
    ]


def accepted(verdict: dict[str, Any]) -> bool:
    """Whether everything was accepted. A cut last batch is not refused."""
    return verdict["error"] is None and all(batch["error"] is None for batch in verdict["batches"])


def difference(kafka: dict[str, Any], ours: dict[str, Any]) -> Difference | None:
    """The first disagreement, or None.

    Batches that both accept must agree in every header field and record. For refused batches, the number of
    records before the error is not compared, since this library returns none. A batch shorter than its header
    ends this library's framing, and is only refused in Kafka.
    """
    theirs: dict[str, Any]
    for theirs, mine in zip(kafka["batches"], ours["batches"], strict=False):
        if (theirs["error"] is None) != (mine["error"] is None):
            return _differ("a batch", theirs["error"], mine["error"], theirs, mine)
        for part in ("header", "records"):
            if theirs["error"] is None and theirs[part] != mine[part]:
                return _differ(part, theirs[part], mine[part], theirs, mine)
    framed = len(ours["batches"])
    if ours["error"] and len(kafka["batches"]) > framed and kafka["batches"][framed]["error"]:
        return None
    if len(kafka["batches"]) != framed:
        return _differ("batches", len(kafka["batches"]), framed, kafka, ours)
    if (kafka["error"] is None) != (ours["error"] is None):
        return _differ("the framing", kafka["error"], ours["error"], kafka, ours)
    if kafka["framed"] != ours["framed"]:
        return _differ("bytes framed", kafka["framed"], ours["framed"], kafka, ours)
    return None


def _differ(what: str, theirs: Any, mine: Any, kafka: dict[str, Any], ours: dict[str, Any]) -> Difference:
    return Difference(f"{what}: Kafka {theirs or 'accepts'}, magicbyte {mine or 'accepts'}", kafka, ours)


def printed(log: magicbyte.PartitionLog, isolation_level: str) -> list[str]:
    """A partition's records as the broker's client prints them; it shows magic 0 as CreateTime."""

    def text(data: bytes | None) -> str:
        return "null" if data is None else data.hex()

    def line(record: magicbyte.Record) -> str:
        kind = TYPES[max(record.timestamp_type, 0)]
        headers = "".join(f"{key.hex()}={text(value)};" for key, value in record.headers_raw)
        fields = [record.offset, record.timestamp, kind, text(record.key_bytes), text(record.value_bytes)]
        return "\t".join(map(str, [*fields, headers]))

    return list(map(line, log.records(isolation_level=isolation_level)))  # type: ignore[arg-type]
