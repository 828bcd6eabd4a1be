"""The text of `magicbyte dump`: the lines of Kafka's DumpLogSegments with --print-data-log.

Scripts parse these lines, so they match exactly, including U+FFFD for bytes that are not UTF-8.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from magicbyte import _core
from magicbyte.cli.dump_options import DumpOptions
from magicbyte.cli.exits import exit_code
from magicbyte.cli.internal_records import compact_json, decoded_text, decoder_for, topic_of_file
from magicbyte.cli.sidecar_text import sidecar_lines
from magicbyte.cli.terminal import print_data, print_problem
from magicbyte.enums import Compression, TimestampType
from magicbyte.errors import Error
from magicbyte.files.segment import Batch, batches, size_of
from magicbyte.files.sidecars import base_offset, is_sidecar, read_sidecar
from magicbyte.internal_topics.decode import Decoder

if TYPE_CHECKING:
    from magicbyte.cli.typed_text import TextOfTopic, TypedText

__all__ = ["print_as_kafka"]

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_TIMESTAMP_TYPES = {
    TimestampType.NO_TIMESTAMP_TYPE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


def print_as_kafka(files: Sequence[str], given: DumpOptions, typed: TypedText | None = None) -> int:
    """Prints the batches, records and entries of files; returns the exit code."""
    printer = _Printer(given, typed)
    for file in files:
        if printer.full:
            break
        if is_sidecar(file):
            printer.sidecar(file)
        else:
            printer.file(file)
    return exit_code(printer.problems)


class _Printer:
    """Prints files until there are enough records; counts the problems it meets."""

    def __init__(self, given: DumpOptions, typed: TypedText | None) -> None:
        self._given = given
        self._text = typed
        self._typed: TextOfTopic | None = None
        self._decoder: Decoder | None = None
        self._left = given.max_records
        self.problems = 0

    @property
    def full(self) -> bool:
        return self._left == 0

    def file(self, path: str) -> None:
        print_data(f"Dumping {path}", _first_line(os.path.basename(path)))
        topic = topic_of_file(path)
        self._decoder = decoder_for(self._given.decode, topic, secrets=self._given.show_secrets)
        self._typed = None if self._text is None else self._text.of_topic(topic, self._problem)
        end = 0
        try:
            size = size_of(path)
            for position, batch in batches(path, self._given.max_decompressed_bytes):
                self._batch(position, batch)
                if self.full:
                    return
                end = position + batch.size_in_bytes
        except Error as error:
            self._problem(error)
            if error.kind == "file_unreadable":
                return
        if size > end:
            print_data(f"Found {size - end} invalid bytes at the end of {os.path.basename(path)}")
            self.problems += 1

    def sidecar(self, path: str) -> None:
        entries, error = read_sidecar(path)
        if isinstance(error, OSError):
            self._problem(error)
            return
        print_data(f"Dumping {path}", *sidecar_lines(path, entries))
        if error is not None:
            self._problem(f"{path}: {error}")

    def _batch(self, position: int, batch: Batch) -> None:
        lines = []
        try:
            if not self._in_range(batch):
                return
            self.problems += not batch.is_valid()
            if self._given.no_records:
                self._count(1)
                print_data(_batch_line(position, batch))
                return
            checksums = chain(_legacy_checksums(batch, self._given.max_decompressed_bytes), repeat(""))
            for record, checksum in zip(batch, checksums, strict=False):
                if not self.full and self._given.includes(record.offset, record.timestamp):
                    self._count(1)
                    lines.append(_record_line(batch, record, checksum) + self._content(batch, record))
        except Error as error:
            self._problem(error)
        if lines or not self._given.has_ranges:
            print_data(_batch_line(position, batch), *lines)

    def _in_range(self, batch: Batch) -> bool:
        # Only if there is a range: the base offset of a legacy wrapper takes its decompression.
        return not self._given.has_ranges or self._given.may_include(
            batch.base_offset, batch.last_offset, batch.max_timestamp
        )

    def _count(self, records: int) -> None:
        if self._left is not None:
            self._left -= records

    def _content(self, batch: Batch, record: _core.Record) -> str:
        if batch.is_control:
            return _control(record.control)
        if self._decoder is not None:
            text, error = decoded_text(self._decoder, record.offset, record.key_bytes, record.value_bytes)
            if error is not None:
                self._problem(f"record at offset {record.offset}: {error}")
            return text
        windows: Mapping[str, int | None] = {}
        if self._typed is not None:
            key, value, windows = self._typed.of_record(record, self._problem)
        else:
            key, value = record.key_bytes, record.value_bytes
        text = "" if key is None else f" key: {_text(key)}"
        text += "".join(f" {name}: {time}" for name, time in windows.items() if time is not None)
        return text if value is None else f"{text} payload: {_text(value)}"

    def _problem(self, error: Exception | str) -> None:
        self.problems += 1
        print_problem(f"magicbyte: {error}")


def _first_line(name: str) -> str:
    snapshot = re.fullmatch(r"(\d{20})-(\d{10})\.checkpoint", name)
    if snapshot is not None:
        return f"Snapshot end offset: {int(snapshot[1])}, epoch: {int(snapshot[2])}"
    if name == "bootstrap.checkpoint":
        return "KRaft bootstrap snapshot"
    return f"Log starting offset: {base_offset(name)}"


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


def _record_line(batch: Batch, record: _core.Record, checksum: str) -> str:
    key, value = record.key_bytes, record.value_bytes
    line = (
        f"| offset: {record.offset} {_TIMESTAMP_TYPES[batch.timestamp_type]}: {record.timestamp}"
        f" keySize: {-1 if key is None else len(key)} valueSize: {-1 if value is None else len(value)}"
    )
    if isinstance(batch, _core.LegacyBatch):
        return line + checksum
    keys = ",".join(_text(name) for name, _ in record.headers_raw)
    return f"{line} sequence: {-1 if record.sequence is None else record.sequence} headerKeys: [{keys}]"


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        # Java puts one U+FFFD for an encoded surrogate, Python one for each of its bytes.
        return _SURROGATE.sub("\ufffd".encode(), value).decode(errors="replace")


def _legacy_checksums(batch: Batch, max_decompressed_bytes: int) -> Iterator[str]:
    """Kafka's output for the CRC-32 of each message of magic 0 or 1; nothing for magic 2."""
    if isinstance(batch, _core.RecordBatch):
        return
    if batch.compression is Compression.NONE:
        yield f" isValid: {_java(batch.is_valid())} crc: {batch.crc}"
    else:
        # The messages' own CRCs: with LogAppendTime they cover a timestamp that no record shows.
        for field in _core.BatchLayout(batch.to_bytes(), max_decompressed_bytes=max_decompressed_bytes):
            if field.is_decompressed and field.name == "crc":
                yield f" isValid: {_java(field.number == field.computed_crc)} crc: {field.number}"


def _control(control: dict[str, Any] | None) -> str:
    """A control record as Kafka prints it; KRaft's are the JSON of its message classes."""
    fields = dict(control or {})
    kind = fields.pop("type")
    match kind:
        case "ABORT" | "COMMIT":
            return f" endTxnMarker: {kind} coordinatorEpoch: {fields['coordinator_epoch']}"
        case "LEADER_CHANGE":
            for voters in ("voters", "granting_voters"):
                fields[voters] = [
                    _voter(field, with_directory=fields["version"] > 0) for field in fields[voters]
                ]
            return f" LeaderChange: {compact_json(_camel_case(fields))}"
        case "KRAFT_VERSION":
            return f" KRaftVersion {compact_json(_camel_case(fields))}"
        case "KRAFT_VOTERS":
            fields["voters"] = [
                {
                    **_voter(voter, with_directory=True),
                    "endpoints": [
                        dict(zip(("name", "host", "port"), endpoint, strict=True))
                        for endpoint in voter["endpoints"]
                    ],
                    "k_raft_version_feature": dict(
                        zip(
                            ("min_supported_version", "max_supported_version"),
                            voter["supported_versions"],
                            strict=True,
                        )
                    ),
                }
                for voter in fields["voters"]
            ]
            return f" KRaftVoters {compact_json(_camel_case(fields))}"
        case "SNAPSHOT_HEADER":
            return f" SnapshotHeader {compact_json(_camel_case(fields))}"
        case "SNAPSHOT_FOOTER":
            return f" SnapshotFooter {compact_json(_camel_case(fields))}"
    return f" controlType: {kind}({fields['id']})"


def _voter(fields: dict[str, Any], *, with_directory: bool) -> dict[str, Any]:
    voter = {"voter_id": fields["voter_id"]}
    if with_directory:
        # Kafka's Uuid: base64 for URLs, without padding.
        voter["voter_directory_id"] = base64.urlsafe_b64encode(fields["directory_id"]).decode().rstrip("=")
    return voter


def _camel_case(document: Any) -> Any:
    if isinstance(document, list):
        return [_camel_case(one) for one in document]
    if not isinstance(document, dict):
        return document
    names = {"kraft_version": "kRaftVersion"}
    return {
        names.get(name) or re.sub(r"_(\w)", lambda match: match[1].upper(), name): _camel_case(value)
        for name, value in document.items()
    }
