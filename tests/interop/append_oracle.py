"""Kafka's UnifiedLog as a process, and the appends on which it and this library are compared."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kafka_broker import java
from kafka_versions import BUILDS
from magicbyte import Compression, RecordsBuilder, TimestampType
from magicbyte.broker import AppendConfig, AppendError, AppendOrigin, validate_append
from oracle import Process
from reading import accepted, read
from wire import CODECS

NOW = 1_700_000_000_000
ORIGINS = list(AppendOrigin)


class AppendOracle(Process):
    """One partition of this version of Kafka."""

    def __init__(self, version: str) -> None:
        # Emptying a log forces several writes to disk; in memory they cost nothing.
        memory = ["-Djava.io.tmpdir=/dev/shm"] if os.access("/dev/shm", os.W_OK) else []
        command = java(*memory, "Append", log_level="off", version=version)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answers(self, requests: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return [json.loads(answer) for answer in self.ask([json.dumps(request) for request in requests])]


class OldValidator(Process):
    """LogValidator of the last Kafka version whose topics could store magic 0 and 1."""

    def __init__(self) -> None:
        super().__init__("Validator", BUILDS, "validator")

    def verdicts(self, cases: Iterable[Case]) -> list[dict[str, Any]]:
        """Verdicts in the form of `AppendOracle`, as far as a validator knows them."""
        return [_verdict(answer.split(" ")) for answer in self.ask([case.words() for case in cases])]


def _verdict(words: list[str]) -> dict[str, Any]:
    if words[0] == "refused":
        _, name, typed, records = words
        refused = {"error": name, "typed": typed == "true"}
        # An empty list would mean that the records are at fault.
        errors = {"recordErrors": [[int(index)] for index in records.split(",")]} if records else {}
        return refused | errors
    _, time, last_offset, temporary, converted, stored = words
    numbers = {
        "maxTimestamp": time,
        "lastOffset": last_offset,
        "temporaryBytes": temporary,
        "converted": converted,
    }
    return {"error": None, "validBytes": 1, "bytes": stored} | {name: int(n) for name, n in numbers.items()}


@dataclass
class Case:
    """One append to an empty log."""

    records: bytes
    config: AppendConfig = field(default_factory=AppendConfig)
    origin: AppendOrigin = AppendOrigin.CLIENT
    next_offset: int = 0
    leader_epoch: int = 7

    def requests(self) -> list[dict[str, Any]]:
        append = {
            "op": "append",
            "records": self.records.hex(),
            "origin": self.origin.name,
            "epoch": self.leader_epoch,
            "now": NOW,
            "magic": self.config.message_format,
            "transactionVersion": 1,
        }
        return [{"op": "open", "offset": self.next_offset, "config": topic(self.config)}, append]

    def words(self) -> str:
        """The request line for `OldValidator`."""
        config = self.config
        codec, level = config.compression, config.level
        words = [
            self.next_offset, self.leader_epoch, NOW, self.origin.name, config.message_format,
            "producer" if codec is None else CODECS[codec], "-" if level is None else level,
            str(config.compacted).lower(), topic(config)["message.timestamp.type"],
            config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms, self.records.hex(),
        ]  # fmt: skip
        return " ".join(map(str, words))

    def ours(self) -> dict[str, Any]:
        """Our verdict, in the form of the oracle's."""
        try:
            info = validate_append(
                self.records,
                self.config,
                next_offset=self.next_offset,
                leader_epoch=self.leader_epoch,
                origin=self.origin,
                now=NOW,
            )
        except AppendError as error:
            errors = [[one.batch_index, one.message] for one in error.record_errors]
            return {"error": error.code, "text": str(error), "recordErrors": errors, "kind": error.kind}
        if info is None:
            return {"error": None, "validBytes": 0}
        return {
            "error": None,
            "firstOffset": -1 if info.first_offset is None else info.first_offset,
            "lastOffset": info.last_offset,
            "maxTimestamp": info.max_timestamp,
            "logAppendTime": -1 if info.log_append_time is None else info.log_append_time,
            "offsetOfMaxTimestamp": info.offset_of_max_timestamp,
            "temporaryBytes": info.temporary_memory_bytes,
            "converted": info.records_converted,
            "bytes": info.records.hex(),
        }


def topic(config: AppendConfig) -> dict[str, str]:
    """The configuration under Kafka's names."""
    codec = config.compression
    names = {
        "max.message.bytes": config.max_message_bytes,
        "max.decompressed.message.bytes": config.max_decompressed_message_bytes,
        "internal.segment.bytes": config.segment_bytes,
        "cleanup.policy": "compact" if config.compacted else "delete",
        "message.timestamp.type": "LogAppendTime" if config.message_timestamp_type else "CreateTime",
        "message.timestamp.before.max.ms": config.message_timestamp_before_max_ms,
        "message.timestamp.after.max.ms": config.message_timestamp_after_max_ms,
        "compression.type": "producer" if codec is None else "uncompressed" if codec == 0 else CODECS[codec],
    }
    if codec and config.level is not None:
        names[f"compression.{CODECS[codec]}.level"] = config.level
    return {name: str(value) for name, value in names.items()}


def difference(kafka: dict[str, Any], ours: dict[str, Any]) -> str | None:
    """What the two disagree on, or None. Where Kafka's checks leak an untyped exception, any clear error will do."""
    if kafka["error"] != ours["error"]:
        if kafka["error"] and not kafka["typed"] and ours["error"]:
            return None
        return f"Kafka {kafka['error'] or 'accepts'}, magicbyte {ours['error'] or 'accepts'}"
    if kafka["error"]:
        theirs, mine = ([one[0] for one in verdict.get("recordErrors", [])] for verdict in (kafka, ours))
        return None if theirs == mine else f"record errors: Kafka {theirs}, magicbyte {mine}"
    if kafka["validBytes"] == 0 or "bytes" not in ours:
        return None if kafka["validBytes"] == ours.get("validBytes") else "bytes to append"
    for name, value in ours.items():
        if name != "bytes" and name in kafka and kafka[name] != value:
            return f"{name}: Kafka {kafka[name]}, magicbyte {value}"
    return None if same_batches(kafka, ours) else "the stored bytes"


def same_batches(kafka: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Whether the bytes are equal, or for codecs whose encoders differ, the headers and records."""
    if kafka["bytes"] == ours["bytes"]:
        return True
    theirs, mine = (read(bytes.fromhex(verdict["bytes"])) for verdict in (kafka, ours))
    codecs = {batch["header"][5] for batch in theirs["batches"]}
    if not ours["converted"] or codecs <= {Compression.NONE, Compression.SNAPPY}:
        return False

    def facts(verdict: dict[str, Any]) -> list[Any]:
        # Size and checksum differ with the compressed bytes.
        return [(b["header"][:3] + b["header"][5:], b["records"]) for b in verdict["batches"]]

    return accepted(theirs) and accepted(mine) and facts(theirs) == facts(mine)


# --- cases ------------------------------------------------------------------------------------------


def config(rng: random.Random) -> AppendConfig:
    """Random settings of a topic."""
    codec = rng.choice([None, None, None, *Compression])
    # Sizes are predictable only for codecs whose output is the same in all encoders.
    limited = codec in (Compression.NONE, Compression.SNAPPY)
    return AppendConfig(
        max_message_bytes=rng.choice([1_048_588, 400, 150]) if limited else 1_048_588,
        segment_bytes=rng.choice([1 << 30, 1 << 30, 500]) if limited else 1 << 30,
        compacted=rng.random() < 0.2,
        message_timestamp_type=TimestampType(rng.choice([0, 0, 0, 1])),
        message_timestamp_before_max_ms=rng.choice([2**63 - 1, 2**63 - 1, 2**63 - 1, 10_000, 0]),
        message_timestamp_after_max_ms=rng.choice([3_600_000, 3_600_000, 2**63 - 1, 0]),
        compression=codec,
        level=rng.choice([None, 1]) if codec in (Compression.GZIP, Compression.ZSTD) else None,
        message_format=rng.choice([2, 2, 2, 2, 1, 0]),
    )


def where(rng: random.Random, records: bytes, settings: AppendConfig | None = None) -> Case:
    """These records as an append with random origin, offsets and topic settings."""
    origin = rng.choice([AppendOrigin.CLIENT] * 7 + ORIGINS)
    offset = rng.choice([0, 0, 1, 100, 1 << 31, rng.randrange(1 << 40)])
    return Case(records, settings or config(rng), origin, offset, rng.choice([7, 7, 0, 100]))


def produced(rng: random.Random) -> bytes:
    """Roughly what a producer could send: one batch of magic 2, or messages of magic 0 and 1."""
    magic = rng.choice([2, 2, 2, 1, 1, 0])
    codec = rng.choice(list(Compression)[: 5 if magic == 2 else 4])
    options: dict[str, Any] = {}
    if magic == 2 and rng.random() < 0.4:
        options = {
            "producer_id": rng.randrange(1 << 40),
            "producer_epoch": rng.randrange(1 << 15),
            "base_sequence": rng.choice([0, 7, (1 << 31) - 1]),
            "is_transactional": rng.random() < 0.4,
        }
    if magic > 0 and rng.random() < 0.1:
        options["log_append_time"] = rng.choice([NOW, NOW - 5000, 5])
    if rng.random() < 0.1:
        options["partition_leader_epoch"] = rng.choice([7, 100])
    builder = RecordsBuilder(magic, codec, **options)
    offset = rng.choice([0] * 9 + [5])
    times = rng.choice(
        [[NOW], [NOW, NOW - 1, NOW - 10_000], [NOW, -1], [0, 1, NOW, NOW + 3_600_001, 1 << 62]]
    )
    null_keys = rng.choice([0, 0, 0.1, 1])
    for _ in range(rng.choice([1, 1, 2, 3, 20])):
        key = None if rng.random() < null_keys else b"key"
        value = rng.choice([None, b"", b"value" * rng.choice([1, 20]), rng.randbytes(30)])
        headers = [("h", b"1"), ("h", None)] if magic == 2 and rng.random() < 0.3 else None
        builder.append(offset, rng.choice(times), key, value, headers)
        offset += rng.choice([1] * 30 + [2])
    data = builder.build()
    twist = rng.random()
    if magic == 1 and codec and twist < 0.3:
        # Old versions of librdkafka leave the wrapper's offset at 0.
        return bytes(8) + data[8:]
    if twist < 0.05:
        return data + (data if twist < 0.03 else produced(rng))
    if twist < 0.08:
        return data + data[: rng.randrange(len(data))]
    if magic == 2 and twist < 0.12:
        return marker(rng)
    return data


def marker(rng: random.Random) -> bytes:
    """The end of a transaction as a coordinator writes it; producers must not."""
    builder = RecordsBuilder(
        2, rng.choice([0, 0, 0, 1]), producer_id=9, producer_epoch=1, is_transactional=True, is_control=True
    )
    builder.append(0, NOW, struct.pack(">hh", 0, rng.randrange(2)), struct.pack(">hi", 0, 3))
    return builder.build()
