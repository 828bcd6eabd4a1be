"""The compiled core: Kafka's record format, the segment directory and Arrow columns, in Rust.

Import the public names from `magicbyte`; this module is internal. `magicbyte/_stubs/` documents its contents.
"""

from magicbyte._stubs.arrow import (
    ArrowBatch,
    ArrowSchema,
    ArrowStream,
    arrow_schema,
    digest_records,
)
from magicbyte._stubs.basics import (
    DEFAULT_MAX_DECOMPRESSED_BYTES,
    LISTED,
    MAX_COLUMN_PAYLOAD,
    InternalError,
    __version__,
    crc32c,
    decode_varint,
    decompress,
    encode_varint,
)
from magicbyte._stubs.batches import (
    Batches,
    LegacyBatch,
    RecordBatch,
    _Batch,
    read_batches,
)
from magicbyte._stubs.broker import (
    AppendValidatorCore,
    PartitionSimulatorCore,
    check_produce_request,
)
from magicbyte._stubs.broker import (
    _AppendInfo as _AppendInfo,
)
from magicbyte._stubs.builder import (
    RecordsBuilder,
)
from magicbyte._stubs.cleaner import (
    KeySet,
    check_segment,
    compact_group,
    index_keys,
    plan_compaction,
    plan_redaction,
    producer_summary,
    redact_group,
    reduce_keys,
)
from magicbyte._stubs.convert import (
    Converter,
    set_last_offset,
    set_max_timestamp,
    set_partition_leader_epoch,
)
from magicbyte._stubs.internal_topics import (
    CommittedOffsets,
    decode_data,
    decode_record,
    is_secret_record,
)
from magicbyte._stubs.lab import (
    batches_cost,
    chunk_cost,
    cost_report,
    try_layouts,
)
from magicbyte._stubs.layout import (
    BatchLayoutCore,
)
from magicbyte._stubs.lines import (
    LineWriter,
    RowFilter,
)
from magicbyte._stubs.log import (
    LogBatchesCore,
    PartitionLogCore,
    RescuerCore,
)
from magicbyte._stubs.message import (
    apis,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    error_name,
)
from magicbyte._stubs.protobuf_structure import protobuf_structure
from magicbyte._stubs.records import (
    Record,
    RecordIterator,
    unpickle_record,
)
from magicbyte._stubs.schema_decoder import SchemaDecoder
from magicbyte._stubs.schema_encoder import SchemaEncoder
from magicbyte._stubs.schema_framing import (
    parse_message_indexes,
    parse_schema_framing,
    write_schema_framing,
)
from magicbyte._stubs.serve import (
    ServerCore,
)
from magicbyte._stubs.sidecars import (
    collect_aborted_transactions,
    leader_epoch_checkpoint,
    offset_index,
    partition_metadata,
    producer_snapshot,
    read_sidecar,
    time_index,
    transaction_index,
)
from magicbyte._stubs.state import (
    AbortedFilter,
    LeaderEpochsCore,
    ProducerStateManagerCore,
    VerificationGuard,
)
from magicbyte._stubs.steps import (
    ChunkDecoder,
    StoredFile,
    SurveyInParts,
    add_encryption_key,
    is_directory,
    is_in_name_order,
    is_partition,
    is_segment_file,
    is_stored,
    list_directory,
    list_partition,
    mount_store,
    offset_for_timestamp,
    partition_history,
    plan_partition,
    reconcile,
    segment_history,
    segments_from,
    survey_segment,
    trim_chunk,
    unreadable_directory,
)
from magicbyte._stubs.wire import (
    WireReader,
    request_record_sets,
    response_record_sets,
)
from magicbyte._stubs.writer import (
    PartitionWriter,
    RowsWriter,
    begin_partition,
    finish_partition,
    rebuild_sidecars,
    rewrite_chunks,
    set_aside,
)

__all__ = [
    "DEFAULT_MAX_DECOMPRESSED_BYTES",
    "LISTED",
    "MAX_COLUMN_PAYLOAD",
    "AbortedFilter",
    "AppendValidatorCore",
    "ArrowBatch",
    "ArrowSchema",
    "ArrowStream",
    "BatchLayoutCore",
    "Batches",
    "ChunkDecoder",
    "CommittedOffsets",
    "Converter",
    "InternalError",
    "KeySet",
    "LeaderEpochsCore",
    "LegacyBatch",
    "LineWriter",
    "LogBatchesCore",
    "PartitionLogCore",
    "PartitionSimulatorCore",
    "PartitionWriter",
    "ProducerStateManagerCore",
    "Record",
    "RecordBatch",
    "RecordIterator",
    "RecordsBuilder",
    "RescuerCore",
    "RowFilter",
    "RowsWriter",
    "SchemaDecoder",
    "SchemaEncoder",
    "ServerCore",
    "StoredFile",
    "SurveyInParts",
    "VerificationGuard",
    "WireReader",
    "_Batch",
    "__version__",
    "add_encryption_key",
    "apis",
    "arrow_schema",
    "batches_cost",
    "begin_partition",
    "check_produce_request",
    "check_segment",
    "chunk_cost",
    "collect_aborted_transactions",
    "compact_group",
    "cost_report",
    "crc32c",
    "decode_data",
    "decode_record",
    "decode_request",
    "decode_response",
    "decode_varint",
    "decompress",
    "digest_records",
    "encode_request",
    "encode_response",
    "encode_varint",
    "error_name",
    "finish_partition",
    "index_keys",
    "is_directory",
    "is_in_name_order",
    "is_partition",
    "is_secret_record",
    "is_segment_file",
    "is_stored",
    "leader_epoch_checkpoint",
    "list_directory",
    "list_partition",
    "mount_store",
    "offset_for_timestamp",
    "offset_index",
    "parse_message_indexes",
    "parse_schema_framing",
    "partition_history",
    "partition_metadata",
    "plan_compaction",
    "plan_partition",
    "plan_redaction",
    "producer_snapshot",
    "producer_summary",
    "protobuf_structure",
    "read_batches",
    "read_sidecar",
    "rebuild_sidecars",
    "reconcile",
    "redact_group",
    "reduce_keys",
    "request_record_sets",
    "response_record_sets",
    "rewrite_chunks",
    "segment_history",
    "segments_from",
    "set_aside",
    "set_last_offset",
    "set_max_timestamp",
    "set_partition_leader_epoch",
    "survey_segment",
    "time_index",
    "transaction_index",
    "trim_chunk",
    "try_layouts",
    "unpickle_record",
    "unreadable_directory",
    "write_schema_framing",
]
