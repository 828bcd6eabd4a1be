"""Every entry point of the compiled core panics on purpose: an exception, and the object stays usable.

The hook exists in builds with debug assertions (Cargo's profile `ci`); with a wheel, this file is skipped.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow as pa
import pytest
from magicbyte import InternalError, RecordsBuilder, _core
from magicbyte.broker import PartitionSimulator
from magicbyte.compat import _core as dropins

panic_next = getattr(_core, "_panic_next", None)
COMPILED = vars(_core) | vars(dropins)
pytestmark = pytest.mark.skipif(panic_next is None, reason="a build without debug assertions")


def builder(magic: int = 2, compression: int = 0) -> RecordsBuilder:
    made = RecordsBuilder(magic, compression)
    for offset in range(3):
        made.append(offset, 1, b"k", b"v", [("h", b"x")] if magic == 2 else None)
    return made


V2 = builder(2, 4).build()
V1 = builder(1, 1).build()
ROWS = pa.record_batch({"value": pa.array([b"x"])})


def batch(data: bytes = V2) -> Any:
    return next(magicbyte.read_batches(data))


class Segment:
    """A partition of one segment, with what the steps of a job return for it."""

    def __init__(self, root: Path) -> None:
        self.path = root / "topic-0"
        self.path.mkdir()
        (self.path / "00000000000000000000.log").write_bytes(V2)
        self.listing = _core.list_partition(str(self.path))
        self.segment = json.dumps(json.loads(self.listing)["segments"][0])
        self.survey = _core.survey_segment(self.segment)
        self.plan = _core.plan_partition(self.listing, [self.survey])
        self.chunk = json.dumps(json.loads(self.plan)["chunks"][0])
        self.alignment = _core.align_copies([self.listing], [self.plan])
        self.merged = _core.plan_merge(self.alignment, [self.listing], [self.plan])
        self.new = root / "new"
        self.new.mkdir()
        self.server = magicbyte.serve(self.path, listen="127.0.0.1:0")


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    return Segment(tmp_path)


def functions(one: Segment) -> dict[str, Callable[[], Any]]:
    """A call of each function of the two modules."""
    c, d = _core, dropins
    text = "{}"
    return {
        "aiokafka_crc32c": lambda: d.aiokafka_crc32c(b"x"),
        "aiokafka_decode_varint": lambda: d.aiokafka_decode_varint(b"\2"),
        "aiokafka_encode_varint": lambda: d.aiokafka_encode_varint(1, lambda byte: None),
        "aiokafka_size_of_varint": lambda: d.aiokafka_size_of_varint(1),
        "arrow_schema": lambda: c.arrow_schema("records", ["offset"]),
        "digest_records": lambda: c.digest_records(ROWS),
        "digest_rows": lambda: c.digest_rows(ROWS, 4096),
        "chain_streams": lambda: c.chain_streams([magicbyte.read_batches(V2).to_arrow()]),
        "read_in_turn": lambda: c.read_in_turn(
            [c.PartitionReader(one.listing, True, 1 << 20, "FAILFAST")],
            [(None, None, None)],
            "read_uncommitted",
        ),
        "check_segment": lambda: c.check_segment(
            one.path / "00000000000000000000.log", c.KeySet([b"x"]), tombstones=False
        ),
        "read_sidecar": lambda: c.read_sidecar(one.path / "00000000000000000000.log"),
        "is_partition": lambda: c.is_partition("topic-0", []),
        "is_in_name_order": lambda: c.is_in_name_order(one.listing),
        "is_same_file": lambda: c.is_same_file("inode 1 2 3", None),
        "is_segment_file": lambda: c.is_segment_file("0.log"),
        "is_directory": lambda: c.is_directory(one.path),
        "is_stored": lambda: c.is_stored("s3://bucket"),
        "list_directory": lambda: c.list_directory(one.path),
        "add_encryption_key": lambda: c.add_encryption_key("no key", None),
        "mount_store": lambda: c.mount_store("panics://bucket", object()),
        "unreadable_directory": lambda: c.unreadable_directory("topic-0", "no such directory"),
        "begin_partition": lambda: c.begin_partition(one.new / "topic-1"),
        "check_produce_request": lambda: c.check_produce_request(V2, 12),
        "collect_aborted_transactions": lambda: c.collect_aborted_transactions(b"", 0, 1),
        "compress": lambda: d.compress(2, 2, b"x"),
        "compress_snappy": lambda: d.compress_snappy(b"x"),
        "compact_group": lambda: c.compact_group(
            text, [], text, one.new, lists=[], clean_until=0, now=0, delete_retention_ms=0
        ),
        "crc32c": lambda: c.crc32c(b"x"),
        "decode_varint": lambda: c.decode_varint(b"\2"),
        "decompress": lambda: c.decompress(0, 2, b"x"),
        "encode_varint": lambda: c.encode_varint(1),
        "batches_cost": lambda: c.batches_cost(V2),
        "align_copies": lambda: c.align_copies([one.listing], [one.plan]),
        "check_chunk": lambda: c.check_chunk(one.chunk, 1 << 20),
        "chunk_cost": lambda: c.chunk_cost(one.chunk),
        "cost_report": lambda: c.cost_report([]),
        "whole_batches": lambda: c.whole_batches(one.path / f"{0:020}.log", 0, 0, 1, []),
        "digest_chunk": lambda: c.digest_chunk(one.chunk, 4096, 1 << 20),
        "digest_contents": lambda: c.digest_contents(one.segment, [0]),
        "hash_chunk": lambda: c.hash_chunk(one.chunk),
        "finish_partition": lambda: c.finish_partition(one.new / "topic-2", []),
        "forget_producers": lambda: c.forget_producers(one.new / "topic-2"),
        "index_keys": lambda: c.index_keys([]),
        "join_alignments": lambda: c.join_alignments(one.alignment, one.alignment),
        "kafka_python_crc32c": lambda: d.kafka_python_crc32c(b"x"),
        "kafka_python_decode_varint": lambda: d.kafka_python_decode_varint(b"\2"),
        "kafka_python_encode_varint": lambda: d.kafka_python_encode_varint(1, lambda byte: None),
        "kafka_python_size_of_varint": lambda: d.kafka_python_size_of_varint(1),
        "leader_epoch_checkpoint": lambda: c.leader_epoch_checkpoint("0\n0\n"),
        "list_log": lambda: c.list_log(str(one.path)),
        "list_partition": lambda: c.list_partition(str(one.path)),
        "producer_summary": lambda: c.producer_summary([], []),
        "offset_for_timestamp": lambda: c.offset_for_timestamp(one.plan, 1),
        "start_for_timestamp": lambda: c.start_for_timestamp(one.plan, 1),
        "offset_index": lambda: c.offset_index(b"", 0),
        "request_record_sets": lambda: c.request_record_sets(b"\0"),
        "response_record_sets": lambda: c.response_record_sets(b"\0", 1, 4),
        "parse_message_indexes": lambda: c.parse_message_indexes(b"\0"),
        "decode_record": lambda: c.decode_record("__consumer_offsets", b"\0\1\0\0\0\0\0\0\0\0", None),
        "is_secret_record": lambda: c.is_secret_record("__cluster_metadata", b"\1\x0b\0"),
        "decode_data": lambda: c.decode_data("ConsumerProtocolAssignment", b"\0\0\0\0\0\0\0\0\0\0"),
        "encode_coordinator_record": lambda: c.encode_coordinator_record("__consumer_offsets", 2, 0, {}, {}),
        "encode_data": lambda: c.encode_data("SnapshotFooterRecord", 0, {}),
        "encode_metadata_record": lambda: c.encode_metadata_record(3, 1, {}),
        "parse_schema_framing": lambda: c.parse_schema_framing(b"\0\0\0\0\1"),
        "schema_header_names": c.schema_header_names,
        "split_window": lambda: c.split_window(b"k" * 20, "time"),
        "partition_metadata": lambda: c.partition_metadata("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"),
        "plan_compaction": lambda: c.plan_compaction(one.plan, one.listing, now=0),
        "plan_merge": lambda: c.plan_merge(one.alignment, [one.listing], [one.plan]),
        "plan_partition": lambda: c.plan_partition(one.listing, [one.survey]),
        "plan_redaction": lambda: c.plan_redaction(one.plan),
        "protobuf_structure": lambda: c.protobuf_structure("message A {}"),
        "producer_snapshot": lambda: c.producer_snapshot(b""),
        "unpickle_batch": lambda: c.unpickle_batch(V2, 0, True, 1 << 20),
        "unpickle_record": lambda: c.unpickle_record((0, 0, 0, 0, 0), (None, None, b"", 0), (False, False)),
        "find_runs": lambda: c.find_runs(str(one.path), 1, "[]"),
        "segments_from": lambda: c.segments_from(one.listing, 0),
        "write_schema_framing": lambda: c.write_schema_framing(1, []),
        "read_batches": lambda: c.read_batches(V2),
        "rebuild_sidecars": lambda: c.rebuild_sidecars(one.path, dry_run=True),
        "join_results": lambda: c.join_results([]),
        "reconcile": lambda: c.reconcile(one.plan, []),
        "reconcile_fetched": lambda: c.reconcile_fetched(one.listing, "read_committed", []),
        "redact_group": lambda: c.redact_group(
            text, [], text, one.new, keys=c.KeySet([]), tombstones=False, clean_until=0
        ),
        "reduce_keys": lambda: c.reduce_keys([], one.new, seed=0),
        "repair_holes": lambda: c.repair_holes(one.alignment, one.merged, [one.plan], one.new),
        "rewrite_chunks": lambda: c.rewrite_chunks([], one.new, 0),
        "set_aside": lambda: c.set_aside(one.chunk, "zeros"),
        "set_last_offset": lambda: c.set_last_offset(V2, 9),
        "set_max_timestamp": lambda: c.set_max_timestamp(V2, 0, 9),
        "set_partition_leader_epoch": lambda: c.set_partition_leader_epoch(V2, 9),
        "set_producer_state": lambda: c.set_producer_state(V2, 1, 2, 3, False),
        "survey_segment": lambda: c.survey_segment(one.segment),
        "segment_history": lambda: c.segment_history(one.segment),
        "partition_history": lambda: c.partition_history(
            one.listing, [], coordinated=[], now=0, transaction_max_timeout_ms=1, bins=1, listed=1
        ),
        "time_index": lambda: c.time_index(b"", 0),
        "transaction_index": lambda: c.transaction_index(b""),
        "apis": lambda: c.apis(),
        "decode_request": lambda: c.decode_request(b""),
        "decode_response": lambda: c.decode_response(b"", 0, 0),
        "encode_request": lambda: c.encode_request(3, 0, {}, {}),
        "encode_response": lambda: c.encode_response(3, 0, {}, {}),
        "header_versions": lambda: c.header_versions(3, 0),
        "trim_chunk": lambda: c.trim_chunk(one.chunk),
        "try_layouts": lambda: c.try_layouts([one.chunk], 0, [], window_bytes=1),
    }


# Getters that only return what the object stores: nothing in them can panic.
STORED = {
    "counts", "_panic_next",
    "AiokafkaDefaultRecord.offset", "AiokafkaDefaultRecord.timestamp", "AiokafkaDefaultRecord.key",
    "AiokafkaDefaultRecord.value", "AiokafkaLegacyRecord.offset", "AiokafkaLegacyRecord.key",
    "AiokafkaLegacyRecord.value", "AiokafkaLegacyRecordBatchBuilder.record_overhead",
    "AppendValidator.config", "ArrowBatch.__len__", "ArrowBatch.num_rows", "ArrowBatches.__iter__",
    "BatchLayout.__iter__",
    "Batches.__iter__", "ChunkDecoder.__iter__", "FetchedChunks.__iter__", "FetchedChunks.offsets",
    "SurveyInParts.__iter__", "BatchHeaders.__iter__",
    "DefaultRecordMetadata.crc", "DefaultRecordMetadata.offset", "DefaultRecordMetadata.size",
    "DefaultRecordMetadata.timestamp",
    "KafkaPythonControlRecord.key", "KafkaPythonControlRecord.offset", "KafkaPythonControlRecord.timestamp",
    "KafkaPythonControlRecord.value", "KafkaPythonDefaultRecord.key", "KafkaPythonDefaultRecord.offset",
    "KafkaPythonDefaultRecord.timestamp", "KafkaPythonDefaultRecord.value",
    "KafkaPythonDefaultRecordBatch.size_in_bytes",
    "KafkaPythonDefaultRecordBatchBuilder.header_size_in_bytes",
    "KafkaPythonLegacyRecord.key", "KafkaPythonLegacyRecord.offset", "KafkaPythonLegacyRecord.value",
    "KafkaPythonLegacyRecordBatch.size_in_bytes", "KafkaPythonLegacyRecordBatchBuilder.record_overhead",
    "LegacyRecordMetadata.crc", "LegacyRecordMetadata.offset", "LegacyRecordMetadata.size",
    "LegacyRecordMetadata.timestamp", "LogBatches.__iter__", "LogRecords.__iter__",
    "PartitionReader.max_decompressed_bytes",
    "Record.attributes", "Record.key", "Record.key_bytes", "Record.offset", "Record.timestamp",
    "Record.value", "Record.value_bytes",
    "PartitionSimulator.config",
    "RecordIterator.__iter__", "RecordIterator.__length_hint__", "RecordIterator.__next__",
    "Rescuer.__iter__", "VerificationGuard.__new__",
    "_Batch.position", "_Batch.size_in_bytes", "_Batch.to_bytes",
    "_DefaultRecordBatch.magic",
    "_MemoryRecords.__iter__", "_MemoryRecords.size_in_bytes",
}  # fmt: skip


def results() -> dict[str, tuple[Any, ...]]:
    """The attributes of an object of each class of results."""
    return {
        "AbortedTransaction": (1, 2, 3),
        "AppendInfo": (b"", 0, 0, 1, 1, None, 0, 0),
        "BatchField": (False, 0, b"", "magic", "magic", "2", None, None, 2, None),
        "BatchMetadata": (0, 0, 1, 1, 9),
        "Check": ("append", "", None),
        "CompletedTransaction": (1, 2, 3, True, 4),
        "FetchResponse": (b"", 0, 0, 0, []),
        "ListedOffset": (1, 2, 3),
        "OffsetIndexEntry": (7, 0),
        "PartitionMetadata": (0, "AAAAAAAAAAAAAAAAAAAAAA"),
        "ProduceResponse": (0, 0, -1, 0, False),
        "ProducerStateEntry": (1, 0, 1, 1, 9, -1, None, ()),
        "ReadCounts": (1, 61, 0, 0, 1),
        "Repair": (b"", 0, "bit 1", 0.1, True),
        "Rescued": ("0.log", 0, "crc_mismatch", "", b"", None, []),
        "Suspect": (0, 1, None, b"", []),
        "TimeIndexEntry": (1, 7),
        "TransactionIndexEntry": (0, 1, 2, 3, 4),
        "Truncation": (7, []),
    }


def objects(one: Segment) -> dict[str, tuple[Callable[[], Any], dict[str, tuple[Any, ...]]]]:
    """How to create an object of each class, and the arguments of its methods."""
    c: Any = _core
    d: Any = dropins
    header = [("h", b"x")]
    default = (2, 4, 0, -1, -1, -1, 1000)
    fields = (0, 1, b"k", b"v")
    reader = c.PartitionReader(one.listing, True, 1 << 20, "FAILFAST")
    asked: dict[str, Any] = {"start_offset": None, "end_offset": None, "start_timestamp": None}
    asked |= {"isolation_level": "read_uncommitted"}
    stream = {**asked, "views": False, "end_timestamp": None, "last": None, "threads": 1}

    fetch: dict[str, Any] = {"start_offset": None, "end_offset": None, "isolation_level": "read_uncommitted"}
    way = ("kafka://x/topic/0", "topic", 0, True, 1 << 20, "FAILFAST")

    def live() -> Any:
        return c.LiveCluster(one.server.bootstrap_servers).partition(*way)

    def fetched() -> Any:
        return live().fetch(**fetch)

    def converter() -> Any:
        return c.Converter(1)

    def empty() -> Path:
        return Path(tempfile.mkdtemp(dir=one.new))

    made = {
        name: (lambda cls=COMPILED[name], given=given: cls(*given), {}) for name, given in results().items()
    }
    return made | {
        "CommittedOffsets": (lambda: c.CommittedOffsets(), {"replay": (batch(),)}),
        "AbortedFilter": (lambda: c.AbortedFilter([]), {"admit": (batch(),)}),
        "AiokafkaDefaultRecord": (lambda: d.AiokafkaDefaultRecord(0, 1, 0, b"k", b"v", header), {}),
        "AiokafkaDefaultRecordBatch": (lambda: d.AiokafkaDefaultRecordBatch(V2), {}),
        "AiokafkaDefaultRecordBatchBuilder": (
            lambda: d.AiokafkaDefaultRecordBatchBuilder(*default),
            {
                "append": (*fields, header),
                "set_producer_state": (1, 1, 1),
                "size_in_bytes": (*fields, header),
                "size_of": (b"k", b"v", header),
                "estimate_size_in_bytes": (b"k", b"v", header),
            },
        ),
        "AiokafkaLegacyRecord": (lambda: d.AiokafkaLegacyRecord(0, 1, 0, b"k", b"v", 5), {}),
        "AiokafkaLegacyRecordBatch": (lambda: d.AiokafkaLegacyRecordBatch(V1, 1), {}),
        "AiokafkaLegacyRecordBatchBuilder": (
            lambda: d.AiokafkaLegacyRecordBatchBuilder(1, 1, 1000),
            {"append": fields, "size_in_bytes": fields},
        ),
        "AiokafkaMemoryRecords": (lambda: d.AiokafkaMemoryRecords(V2), {}),
        "AppendValidator": (lambda: c.AppendValidator(), {"validate": (V2,)}),
        "ArrowBatch": (lambda: batch().to_arrow(), {}),
        "ArrowSchema": (lambda: c.arrow_schema("batches"), {}),
        "ArrowBatches": (lambda: iter(magicbyte.read_batches(V2).to_arrow()), {}),
        "ArrowStream": (lambda: magicbyte.read_batches(V2).to_arrow(), {}),
        "BatchLayout": (lambda: c.BatchLayout(V2), {}),
        "Batches": (lambda: magicbyte.read_batches(V2), {"to_arrow": (["offset"],)}),
        "ClusterReader": (
            lambda: c.ClusterReader(one.server.bootstrap_servers),
            {
                "offsets": ([("topic", 0)], "read_committed"),
                "committed_offsets": ("group",),
                "digest": ([("topic", 0, 0, 1)], 1, "read_committed", 1 << 20),
                "digest_records": ([("topic", 0, 0)],),
                "copy_batches": ([("topic", 0, 0, 0, one.new, None)], 1 << 20),
                "offsets_for_time": ([("topic", 0)], 0),
                "ends_of_leader_epochs": ([("topic", 0, 0)],),
                "leader_epochs": ([("topic", 0)],),
                "describe": (3, {"topics": None}, {}),
            },
        ),
        "LiveCluster": (
            lambda: c.LiveCluster(one.server.bootstrap_servers),
            {"partition": way},
        ),
        "FetchedChunks": (lambda: fetched(), {}),
        "FetchedChunk": (lambda: next(fetched()), {}),
        "KeySet": (lambda: c.KeySet([b"x"]), {"find": (b"x",)}),
        "StoredFile": (lambda: c.StoredFile(one.path / f"{0:020}.log"), {"read": (0, 1)}),
        "ChunkDecoder": (lambda: c.ChunkDecoder(one.chunk, columns=["value"]), {}),
        "BatchHeaders": (lambda: c.BatchHeaders(one.segment), {}),
        "SurveyInParts": (lambda: c.SurveyInParts(one.segment, 1), {}),
        "Converter": (
            converter,
            {
                "up_convert": (V1,),
                "down_convert": (V2, 1),
                "recompress": (V2,),
                "merge": (V2,),
                "split": (V2, 100),
                "rebatch": (V2, 100),
                "assign_offsets": (builder(0, 1).build(), 7),
            },
        ),
        "DefaultRecordMetadata": (lambda: d.DefaultRecordMetadata(0, 1, 2), {}),
        "KafkaPythonControlRecord": (
            lambda: d.KafkaPythonControlRecord(0, 0, 1, 0, b"\0\0\0\1", b"v", []),
            {},
        ),
        "KafkaPythonDefaultRecord": (lambda: d.KafkaPythonDefaultRecord(0, 0, 1, 0, b"k", b"v", header), {}),
        "KafkaPythonDefaultRecordBatch": (lambda: d.KafkaPythonDefaultRecordBatch(V2), {}),
        "KafkaPythonDefaultRecordBatchBuilder": (
            lambda: d.KafkaPythonDefaultRecordBatchBuilder(*default),
            {
                "append": (*fields, header),
                "set_producer_state": (1, 1, 1, False),
                "size_in_bytes": (0, 0, b"k", b"v", header),
                "size_of": (b"k", b"v", header),
                "estimate_size_in_bytes": (b"k", b"v", header),
            },
        ),
        "KafkaPythonLegacyRecord": (
            lambda: d.KafkaPythonLegacyRecord(1, 0, 1, 0, b"k", b"v", 5, b""),
            {},
        ),
        "KafkaPythonLegacyRecordBatch": (lambda: d.KafkaPythonLegacyRecordBatch(V1, 1), {}),
        "KafkaPythonLegacyRecordBatchBuilder": (
            lambda: d.KafkaPythonLegacyRecordBatchBuilder(1, 1, 1000),
            {
                "append": fields,
                "size_in_bytes": fields,
                "record_size": (1, b"k", b"v"),
                "estimate_size_in_bytes": (1, 1, b"k", b"v"),
            },
        ),
        "KafkaPythonMemoryRecords": (lambda: d.KafkaPythonMemoryRecords(V2), {}),
        "LeaderEpochs": (
            lambda: c.LeaderEpochs([(0, 0)]),
            {
                "assign": (1, 5),
                "truncate_from_start": (1,),
                "truncate_from_end": (1,),
                "epoch_for_offset": (1,),
                "previous_epoch": (1,),
                "next_epoch": (1,),
                "end_offset_for_epoch": (0, 1),
                "truncation": (5, c.LeaderEpochs([(0, 0)]), 7),
            },
        ),
        "LegacyBatch": (lambda: batch(V1), {"to_arrow": (["offset"],)}),
        "LegacyRecordMetadata": (lambda: d.LegacyRecordMetadata(0, 1, 2, 3), {}),
        "LineWriter": (lambda: c.LineWriter(), {"lines": (ROWS,), "header": (ROWS,)}),
        "LogBatches": (lambda: reader.batches(**asked), {}),
        "LogRecords": (lambda: reader.records(**asked), {}),
        "PartitionReader": (
            live,
            {
                "fetch": (fetch,),
                "offsets": (None, None, "read_committed"),
                "verify": ("read_uncommitted",),
                "to_arrow": (["offset"], stream),
                "batches": (asked,),
                "records": (asked,),
                "offset_for_timestamp": (1,),
            },
        ),
        "PartitionSimulator": (
            lambda: c.PartitionSimulator(),
            {
                "append": (V2,),
                "end_transaction": (1, 0, True),
                "fetch": (0, 10),
                "list_offsets": (-1,),
                "truncate": (0,),
                "delete_records": (0,),
                "advance": (5,),
            },
        ),
        "PartitionWriter": (lambda: c.PartitionWriter(empty()), {"append": (V2,)}),
        "ProducerStateManager": (
            lambda: c.ProducerStateManager(),
            {
                "check": (batch(),),
                "apply": (batch(),),
                "apply_together": ([batch()],),
                "start_verification": (1, 0, 0, {"supports_epoch_bump": False, "now": 1}),
                "set_high_watermark": (1,),
                "truncate_and_reload": (0, 0, 1),
                "set_log_start_offset": (0,),
                "truncate_fully_and_start_at": (0,),
                "remove_expired_producers": (0,),
                "delete_snapshots_before": (0,),
                "remove_stray_snapshots": ([],),
            },
        ),
        "Record": (lambda: next(iter(batch())), {"last_header": ("h",), "headers_for": (b"h",)}),
        "RecordBatch": (batch, {"to_arrow": (["offset"],)}),
        "RecordIterator": (lambda: iter(batch()), {}),
        "RecordsBuilder": (
            builder,
            {
                "append": (9, 1, b"k", b"v"),
                "try_append": (None, 1, b"k", b"v"),
                "append_many": ([(10, 1, b"k", b"v")],),
                "append_arrow": (ROWS, {"offset": 20}),
                "has_room_for": (1, b"k"),
                "set_producer_state": (1, 2, 3),
                "empty_batch": (30, 1),
            },
        ),
        "Rescuer": (lambda: c.Rescuer(one.survey), {}),
        "SchemaDecoder": (
            lambda: c.SchemaDecoder("avro", '"int"'),
            {
                "new_ids": (ROWS,),
                "add_writer": (7, '"int"'),
                "give": ('"int"',),
                "refuse": (7, "no"),
                "messages": (ROWS,),
                "absent": (7, "no"),
                "decode": (ROWS,),
            },
        ),
        "SchemaEncoder": (lambda: c.SchemaEncoder("avro", '"bytes"'), {"encode": (ROWS,)}),
        "Server": (lambda: c.Server([], ("127.0.0.1", 0)), {}),
        "RowFilter": (lambda: c.RowFilter(), {"mask": (ROWS,)}),
        "RowsWriter": (lambda: c.RowsWriter(empty()), {"append": (ROWS,)}),
        "VerificationGuard": (c.VerificationGuard, {}),
        "WireReader": (lambda: c.WireReader([], []), {"of_streams": (one.path / f"{0:020}.log",) * 2}),
    }


@contextmanager
def panic() -> Iterator[None]:
    """The next call into the core panics."""
    assert panic_next is not None
    panic_next(True)
    try:
        yield
    finally:
        assert not panic_next(False), "the call did not reach the hook"


def panics(name: str, call: Callable[[], Any]) -> None:
    with panic(), pytest.raises(InternalError, match="on purpose") as raised:
        call()
    assert isinstance(raised.value, RuntimeError), name
    assert not isinstance(raised.value, magicbyte.Error), name


def members(cls: type) -> Iterator[str]:
    """The entry points of a class, including those of hidden base classes, without constants."""
    slots = {
        "__iter__", "__next__", "__len__", "__repr__", "__str__", "__length_hint__",
        "__arrow_c_schema__", "__arrow_c_array__", "__arrow_c_stream__",
    }  # fmt: skip
    # Attributes of results are stored.
    stored = getattr(cls, "__match_args__", ())
    for base in cls.__mro__[:-1]:
        for name, member in vars(base).items():
            if name in stored:
                continue
            if name in slots or (not name.startswith("__") and hasattr(type(member), "__get__")):
                yield f"{base.__name__}.{name}" if base.__name__.startswith("_") else name


def test_functions(segment: Segment) -> None:
    calls = functions(segment)
    names = {name for name, it in COMPILED.items() if callable(it) and not isinstance(it, type)}
    assert names - STORED == set(calls)
    for name, call in calls.items():
        panics(name, call)


def test_classes(segment: Segment) -> None:
    missed: list[str] = []
    classes = {n: it for n, it in COMPILED.items() if isinstance(it, type) and not n.startswith("_")}
    del classes["InternalError"]
    made = objects(segment)
    assert set(classes) == set(made)
    for class_name, (make, arguments) in made.items():
        cls = classes[class_name]
        if "__new__" in vars(cls) and f"{class_name}.__new__" not in STORED:
            panics(class_name, make)
        for member in members(cls):
            hidden, _, name = member.rpartition(".")
            if f"{hidden or class_name}.{name}" in STORED:
                continue
            one = make()
            given = list(arguments.get(name, ()))
            keywords = given.pop() if given and isinstance(given[-1], dict) else {}

            def call(one: Any = one, name: str = name, given: Any = given, keywords: Any = keywords) -> Any:
                if name == "__next__":
                    return next(one)
                if name in ("__iter__", "__repr__", "__str__", "__len__"):
                    return {"__iter__": iter, "__repr__": repr, "__str__": str, "__len__": len}[name](one)
                found = getattr(one, name)
                return found(*given, **keywords) if callable(found) else found

            try:
                panics(f"{class_name}.{name}", call)
            except AssertionError:
                missed.append(f"{class_name}.{name}")
            # The object is still usable.
            with suppress(ValueError, TypeError, StopIteration, AssertionError):
                call()
    assert missed == []


@pytest.mark.parametrize("threads", [1, 3])
def test_arrow_callbacks(threads: int) -> None:
    """In a callback from C, a panic would end the process."""
    reader = pa.RecordBatchReader.from_stream(magicbyte.read_batches(V2 * 50).to_arrow(threads=threads))
    with panic(), pytest.raises(pa.ArrowInvalid, match=r"panicked.*on purpose"):
        reader.read_next_batch()
    # Work in progress is lost, so no later call may report a regular end.
    for _ in range(2):
        with pytest.raises(pa.ArrowInvalid, match="panicked"):
            reader.read_next_batch()
    stream = magicbyte.read_batches(V2).to_arrow().__arrow_c_stream__()
    with panic(), pytest.raises(pa.ArrowInvalid, match=r"panicked.*on purpose"):
        pa.RecordBatchReader._import_from_c_capsule(stream)


def test_a_lock_that_was_held_is_free_again() -> None:
    partition = PartitionSimulator()
    payload = builder().build()
    with panic(), pytest.raises(InternalError):
        partition.append(payload)
    assert partition.append(payload).last_offset == 2
