"""`dump --format kafka`: the lines of Kafka's DumpLogSegments with --print-data-log.

Scripts read these lines, so they are kept to the letter, U+FFFD for bytes that are not UTF-8 included.
"""

from __future__ import annotations

import base64
import json
import os
import re
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from magicbyte import _core
from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.selection import Selection
from magicbyte.enums import Compression, TimestampType
from magicbyte.errors import Error

__all__ = ["dump_kafka"]

Batch: TypeAlias = "_core.RecordBatch | _core.LegacyBatch"

_BLOCK_BYTES = 16 << 20
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_TIMESTAMP_TYPES = {
    TimestampType.NO_TIMESTAMP_TYPE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


def dump_kafka(
    files: Sequence[str], selection: Selection, *, no_records: bool, max_decompressed_bytes: int
) -> int:
    """Prints batches and records of files as they lie there; returns the exit code."""
    printer = _Printer(selection, no_records)
    for file in files:
        if printer.full:
            break
        printer.file(file, max_decompressed_bytes)
    return PROBLEMS if printer.problems else CLEAN


class _Printer:
    def __init__(self, selection: Selection, no_records: bool) -> None:
        self._selection = selection
        self._no_records = no_records
        self._left = selection.max_records
        self.problems = 0

    @property
    def full(self) -> bool:
        return self._left == 0

    def file(self, path: str, max_decompressed_bytes: int) -> None:
        _print(f"Dumping {path}", _first_line(os.path.basename(path)))
        size, end = os.path.getsize(path), 0
        try:
            for position, batch in _batches(path, max_decompressed_bytes):
                self._batch(position, batch)
                if self.full:
                    return
                end = position + batch.size_in_bytes
        except Error as error:
            self._problem(error)
        if size > end:
            _print(f"Found {size - end} invalid bytes at the end of {os.path.basename(path)}")
            self.problems += 1

    def _batch(self, position: int, batch: Batch) -> None:
        lines = []
        try:
            if not self._in_range(batch):
                return
            self.problems += not batch.is_valid()
            if self._no_records:
                self._count(1)
                _print(_batch_line(position, batch))
                return
            for record in batch:
                if not self.full and self._selection.takes(record.offset, record.timestamp):
                    self._count(1)
                    lines.append(_record_line(batch, record))
        except Error as error:
            self._problem(error)
        if lines or not self._selection.limited:
            _print(_batch_line(position, batch), *lines)

    def _in_range(self, batch: Batch) -> bool:
        # Asked only if it matters: the base offset of a legacy wrapper is known by decompressing it.
        return not self._selection.limited or self._selection.may_take(
            batch.base_offset, batch.last_offset, batch.max_timestamp
        )

    def _count(self, records: int) -> None:
        if self._left is not None:
            self._left -= records

    def _problem(self, error: Error) -> None:
        self.problems += 1
        print(f"magicbyte: {error}", file=sys.stderr)


def _print(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _first_line(name: str) -> str:
    snapshot = re.fullmatch(r"(\d{20})-(\d{10})\.checkpoint", name)
    if snapshot is not None:
        return f"Snapshot end offset: {int(snapshot[1])}, epoch: {int(snapshot[2])}"
    base = re.match(r"\d{20}", name)
    return f"Log starting offset: {int(base[0]) if base else 0}"


def _batches(path: str, max_decompressed_bytes: int) -> Iterator[tuple[int, Batch]]:
    """Yields each batch with its position in the file, reading it block by block."""
    start, size = 0, _BLOCK_BYTES
    with open(path, "rb") as file:
        while True:
            file.seek(start)
            block = file.read(size)
            # A wrong CRC is shown as `isvalid: false`, and the records all the same.
            batches = _core.read_batches(
                block, check_crcs=False, max_decompressed_bytes=max_decompressed_bytes
            )
            for batch in batches:
                yield start + batch.position, batch
            if len(block) < size:
                return
            consumed = len(block) - batches.remaining
            start += consumed
            # A batch that is larger than the block is read as a whole.
            size = _BLOCK_BYTES if consumed else size + max(batches.needed, _BLOCK_BYTES)


def _batch_line(position: int, batch: Batch) -> str:
    if isinstance(batch, _core.RecordBatch):
        horizon = batch.delete_horizon_ms
        line = (
            f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.record_count}"
            f" baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence}"
            f" producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch}"
            f" partitionLeaderEpoch: {batch.partition_leader_epoch}"
            f" isTransactional: {_java(batch.is_transactional)} isControl: {_java(batch.is_control)}"
            f" deleteHorizonMs: OptionalLong{'.empty' if horizon is None else f'[{horizon}]'}"
        )
    else:
        line = f"offset: {batch.last_offset}"
    return (
        f"{line} position: {position} {_TIMESTAMP_TYPES[batch.timestamp_type]}: {batch.max_timestamp}"
        f" size: {batch.size_in_bytes} magic: {batch.magic} compresscodec: {batch.compression.name.lower()}"
        f" crc: {batch.crc} isvalid: {_java(batch.is_valid())}"
    )


def _java(value: bool) -> str:
    return "true" if value else "false"


def _record_line(batch: Batch, record: _core.Record) -> str:
    key, value = record.key_bytes, record.value_bytes
    line = (
        f"| offset: {record.offset} {_TIMESTAMP_TYPES[batch.timestamp_type]}: {record.timestamp}"
        f" keySize: {-1 if key is None else len(key)} valueSize: {-1 if value is None else len(value)}"
    )
    if isinstance(batch, _core.RecordBatch):
        keys = ",".join(_text(name) for name, _ in record.headers_raw)
        sequence = -1 if record.sequence is None else record.sequence
        line += f" sequence: {sequence} headerKeys: [{keys}]"
    else:
        line += _legacy_checksum(batch, record)
    if batch.is_control:
        return line + _control(record.control)
    if key is not None:
        line += f" key: {_text(key)}"
    if value is not None:
        line += f" payload: {_text(value)}"
    return line


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        # Java puts one U+FFFD for an encoded surrogate, Python one for each of its bytes.
        return _SURROGATE.sub("\ufffd".encode(), value).decode(errors="replace")


def _legacy_checksum(batch: _core.LegacyBatch, record: _core.Record) -> str:
    """What Kafka says about the CRC-32 of one message of magic 0 or 1."""
    if batch.compression is Compression.NONE:
        return f" isValid: {_java(batch.is_valid())} crc: {batch.crc}"
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        # Covers the producer's time, for which the broker's stands here.
        return " isValid: true"
    message = struct.pack(">bB", batch.magic, record.attributes)
    if batch.magic == 1:
        message += struct.pack(">q", record.timestamp)
    for part in (record.key_bytes, record.value_bytes):
        message += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return f" isValid: true crc: {zlib.crc32(message)}"


def _control(facts: dict[str, Any] | None) -> str:
    """A control record as Kafka prints it; KRaft's as the JSON of its message classes."""
    facts = dict(facts or {})
    kind = facts.pop("type")
    match kind:
        case "ABORT" | "COMMIT":
            return f" endTxnMarker: {kind} coordinatorEpoch: {facts['coordinator_epoch']}"
        case "LEADER_CHANGE":
            for voters in ("voters", "granting_voters"):
                facts[voters] = [_voter(one, with_directory=facts["version"] > 0) for one in facts[voters]]
            return f" LeaderChange: {_json(facts)}"
        case "KRAFT_VERSION":
            return f" KRaftVersion {_json(facts)}"
        case "KRAFT_VOTERS":
            facts["voters"] = [
                {
                    **_voter(one, with_directory=True),
                    "endpoints": [
                        dict(zip(("name", "host", "port"), endpoint, strict=True))
                        for endpoint in one["endpoints"]
                    ],
                    "k_raft_version_feature": dict(
                        zip(
                            ("min_supported_version", "max_supported_version"),
                            one["supported_versions"],
                            strict=True,
                        )
                    ),
                }
                for one in facts["voters"]
            ]
            return f" KRaftVoters {_json(facts)}"
        case "SNAPSHOT_HEADER":
            return f" SnapshotHeader {_json(facts)}"
        case "SNAPSHOT_FOOTER":
            return f" SnapshotFooter {_json(facts)}"
    return f" controlType: {kind}({facts['id']})"


def _voter(facts: dict[str, Any], *, with_directory: bool) -> dict[str, Any]:
    voter = {"voter_id": facts["voter_id"]}
    if with_directory:
        # Kafka's Uuid: base64 for URLs, without padding.
        voter["voter_directory_id"] = base64.urlsafe_b64encode(facts["directory_id"]).decode().rstrip("=")
    return voter


def _json(facts: dict[str, Any]) -> str:
    """Kafka's spelling of names, no spaces."""
    return json.dumps(_camel_case(facts), separators=(",", ":"), ensure_ascii=False)


def _camel_case(facts: Any) -> Any:
    if isinstance(facts, list):
        return [_camel_case(one) for one in facts]
    if not isinstance(facts, dict):
        return facts
    names = {"kraft_version": "kRaftVersion"}
    return {
        names.get(name) or re.sub(r"_(\w)", lambda match: match[1].upper(), name): _camel_case(value)
        for name, value in facts.items()
    }
