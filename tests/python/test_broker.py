"""Appends and the partition in memory, without Kafka; tests/interop compares both with it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from magicbyte import Compression, RecordsBuilder, TimestampType
from magicbyte.broker import (
    AppendConfig,
    AppendError,
    AppendOrigin,
    AppendValidator,
    ListedOffset,
    PartitionSimulator,
    check_produce_request,
    validate_append,
)
from magicbyte.state import AbortedTransaction

NOW = 1_700_000_000_000
ROOT = Path(__file__).parents[2]


def batch(count: int = 2, codec: Compression = Compression.NONE, *, magic: int = 2, **options: int) -> bytes:
    builder = RecordsBuilder(magic, codec, **options)  # type: ignore[arg-type]
    builder.append_many([(index, NOW + index, b"k", b"v" * 50) for index in range(count)])
    return builder.build()


def idempotent(sequence: int, *, epoch: int = 0, transactional: bool = False, count: int = 2) -> bytes:
    return batch(
        count, producer_id=5, producer_epoch=epoch, base_sequence=sequence, is_transactional=transactional
    )


def code_of(error: pytest.ExceptionInfo[AppendError]) -> str:
    return error.value.code


def test_in_place() -> None:
    sent = batch(3, Compression.LZ4)
    info = validate_append(sent, next_offset=40, leader_epoch=7, now=NOW)
    assert info is not None
    assert (info.first_offset, info.last_offset, info.records_converted) == (40, 42, 0)
    assert (info.max_timestamp, info.offset_of_max_timestamp, info.log_append_time) == (NOW + 2, 42, None)
    # Only base offset and leader epoch differ; the checksum covers neither.
    assert info.records[16:] == sent[16:]
    (stored,) = magicbyte.read_batches(info.records)
    assert (stored.base_offset, stored.partition_leader_epoch) == (40, 7)


def test_recompression() -> None:
    config = AppendConfig(
        compression=Compression.ZSTD, level=5, message_timestamp_type=TimestampType.LOG_APPEND_TIME
    )
    info = validate_append(batch(3, magic=1), config, next_offset=40, now=NOW + 9)
    assert info is not None
    (stored,) = magicbyte.read_batches(info.records)
    assert (stored.magic, stored.compression, stored.max_timestamp) == (2, Compression.ZSTD, NOW + 9)
    assert [record.offset for record in stored] == [40, 41, 42]
    assert (info.log_append_time, info.records_converted) == (NOW + 9, 3)


def test_record_errors() -> None:
    builder = RecordsBuilder()
    builder.append_many([(0, NOW, b"k", b"v"), (1, NOW, None, b"v"), (2, NOW + 3_600_001, b"k", b"v")])
    validator = AppendValidator(AppendConfig(compacted=True))
    with pytest.raises(AppendError, match="no key") as refused:
        validator.validate(builder.build(), now=NOW)
    # One wrong timestamp changes the error code.
    assert (refused.value.code, refused.value.error_code) == ("INVALID_TIMESTAMP", 32)
    assert [one.batch_index for one in refused.value.record_errors] == [1, 2]
    assert "key" in refused.value.record_errors[0].message
    again = pickle.loads(pickle.dumps(refused.value))
    assert vars(again) == vars(refused.value)
    assert str(again) == str(refused.value)


def test_damage_gives_its_position() -> None:
    damaged = bytearray(batch())
    damaged[70] ^= 1
    with pytest.raises(AppendError) as refused:
        validate_append(damaged, now=NOW)
    assert (refused.value.code, refused.value.kind, refused.value.position) == (
        "CORRUPT_MESSAGE",
        "crc_mismatch",
        0,
    )


def test_bombs_are_capped() -> None:
    builder = RecordsBuilder(2, Compression.GZIP)
    builder.append(0, NOW, b"k", bytes(1 << 20))
    with pytest.raises(AppendError) as refused:
        validate_append(builder.build(), AppendConfig(max_decompressed_bytes=1 << 16), now=NOW)
    assert (refused.value.code, refused.value.kind) == ("MESSAGE_TOO_LARGE", "limit_exceeded")


def test_invalid_configurations() -> None:
    with pytest.raises(magicbyte.Error, match="magic 3"):
        AppendValidator(AppendConfig(message_format=3))
    with pytest.raises(magicbyte.UnsupportedCompressionError):
        AppendValidator(AppendConfig(compression=Compression.GZIP, level=99))
    with pytest.raises(magicbyte.Error, match="bounds"):
        AppendValidator(AppendConfig(message_timestamp_after_max_ms=-1))


def test_produce_requests() -> None:
    check_produce_request(batch(magic=1), 2)
    with pytest.raises(AppendError, match="magic 2") as refused:
        check_produce_request(batch(magic=1), 12)
    assert code_of(refused) == "INVALID_RECORD"
    with pytest.raises(AppendError) as refused:
        check_produce_request(batch(codec=Compression.ZSTD), 6)
    assert code_of(refused) == "UNSUPPORTED_COMPRESSION_TYPE"


def test_a_truncated_batch_is_ignored() -> None:
    assert validate_append(batch()[:-1], now=NOW) is None


def test_sequences() -> None:
    partition = PartitionSimulator(clock=NOW)
    sent = [idempotent(sequence) for sequence in range(0, 12, 2)]
    assert [partition.append(one).base_offset for one in sent] == [0, 2, 4, 6, 8, 10]
    again = partition.append(sent[1])
    assert (again.base_offset, again.last_offset, again.is_duplicate) == (2, 3, True)
    # The last five batches are remembered.
    with pytest.raises(AppendError) as refused:
        partition.append(sent[0])
    assert code_of(refused) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    with pytest.raises(AppendError) as refused:
        partition.append(idempotent(14))
    assert code_of(refused) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert partition.append(idempotent(0, epoch=1)).base_offset == 12
    with pytest.raises(AppendError) as refused:
        partition.append(idempotent(12))
    assert code_of(refused) == "INVALID_PRODUCER_EPOCH"
    (state,) = partition.producers
    assert (state.producer_id, state.producer_epoch, state.last_sequence, state.last_offset) == (5, 1, 1, 13)
    partition.advance(86_400_000 + 2)
    assert partition.producers == []


def test_transactions() -> None:
    partition = PartitionSimulator(clock=NOW)
    partition.append(idempotent(0, transactional=True))
    partition.append(batch())
    assert (partition.last_stable_offset, partition.log_end_offset) == (0, 4)
    assert partition.fetch(0, isolation_level="read_committed").records == b""
    assert partition.list_offsets("latest", isolation_level="read_committed") == ListedOffset(-1, 0, 0)
    with pytest.raises(AppendError) as refused:
        partition.append(idempotent(2))
    assert code_of(refused) == "INVALID_TXN_STATE"
    assert partition.end_transaction(5, 0, committed=False).base_offset == 4
    fetched = partition.fetch(0, isolation_level="read_committed")
    assert fetched.aborted_transactions == [AbortedTransaction(5, 0, 4)]
    assert [one.is_control for one in magicbyte.read_batches(fetched.records)] == [False, False, True]
    assert partition.last_stable_offset == 5


def test_fetches() -> None:
    partition = PartitionSimulator(clock=NOW)
    for _ in range(3):
        partition.append(batch())
    size = len(batch())
    # The first batch is returned whole, whatever the limit: the one with the offset, even in its middle.
    assert len(partition.fetch(3, 1).records) == size
    assert len(partition.fetch(0, size + 20).records) == size + 20
    assert partition.fetch(6).records == b""
    for offset in (-1, 7):
        with pytest.raises(AppendError) as refused:
            partition.fetch(offset)
        assert code_of(refused) == "OFFSET_OUT_OF_RANGE"
    with pytest.raises(ValueError, match="read_committed"):
        partition.fetch(0, isolation_level="committed")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (
            {"segment_bytes": 2**40},
            OverflowError,
            "segment_bytes 1099511627776: expected -2147483648 to ",
        ),
        ({"max_decompressed_bytes": -1}, OverflowError, "max_decompressed_bytes -1: expected 0 to "),
        ({"level": 2**31}, OverflowError, "level 2147483648: expected "),
        ({"max_message_bytes": "1"}, TypeError, "max_message_bytes: "),
        ({"compacted": 2}, TypeError, "compacted: "),
        ({"compression": "xz"}, ValueError, "compression: no codec "),
    ],
)
def test_settings_of_other_types_are_named(
    settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^AppendConfig.{message}"):
        AppendValidator(AppendConfig(**settings))


@pytest.mark.parametrize("given", [AppendConfig, {"compacted": True}, 1])
def test_a_config_is_an_append_config(given: Any) -> None:
    for construct in (AppendValidator, PartitionSimulator):
        with pytest.raises(TypeError, match="expected an AppendConfig, not "):
            construct(given)


@pytest.mark.parametrize(
    ("origin", "error"),
    [(4, ValueError), (-1, ValueError), (2**70, ValueError), (True, TypeError), ("client", TypeError)],
)
def test_other_origins_are_refused(origin: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="origin"):
        AppendValidator().validate(batch(), origin=origin)
    with pytest.raises(error, match="origin"):
        PartitionSimulator().append(batch(), origin=origin)


def test_offset_for_timestamp() -> None:
    partition = PartitionSimulator(clock=NOW)
    partition.append(batch())
    partition.elect_leader()
    partition.append(batch())
    assert partition.list_offsets("earliest") == ListedOffset(-1, 0, 0)
    assert partition.list_offsets("latest") == ListedOffset(-1, 4, 1)
    assert partition.list_offsets("max_timestamp") == ListedOffset(NOW + 1, 1, 0)
    assert partition.list_offsets(NOW + 1) == ListedOffset(NOW + 1, 1, 0)
    assert partition.list_offsets(NOW + 2) is None
    partition.delete_records(3)
    assert partition.list_offsets(0) == ListedOffset(NOW + 1, 3, 1)
    with pytest.raises(AppendError):
        partition.fetch(2)


def test_truncation() -> None:
    partition = PartitionSimulator(clock=NOW)
    for sequence in (0, 2, 4):
        partition.append(idempotent(sequence))
    partition.truncate(4)
    assert partition.log_end_offset == 4
    assert partition.append(idempotent(2)).is_duplicate
    assert partition.append(idempotent(4)).base_offset == 4
    with pytest.raises(AppendError):
        partition.truncate(-1)


def test_followers_keep_offsets() -> None:
    leader, follower = PartitionSimulator(clock=NOW), PartitionSimulator()
    for sequence in (0, 2, 4):
        leader.append(idempotent(sequence, transactional=sequence == 4))
    copied = leader.fetch(0).records
    follower.append(copied, origin=AppendOrigin.REPLICATION)
    assert follower.fetch(0).records == copied
    assert follower.producers == leader.producers
    assert follower.last_stable_offset == leader.last_stable_offset == 4
    with pytest.raises(AppendError, match="ends at"):
        follower.append(copied, origin=AppendOrigin.REPLICATION)


def test_the_example_runs() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples/flaky_producer.py"], capture_output=True, text=True, check=True
    )
    assert "200 records, each once and in order" in done.stdout
    assert "OUT_OF_ORDER_SEQUENCE_NUMBER" in done.stdout
