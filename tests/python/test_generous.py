"""What the API takes besides exact types, and what its objects can do: Python's usual protocols."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import MappingProxyType

import magicbyte
import pytest
from magicbyte import Compression, PartitionChoice, PartitionLog, RecordsBuilder, commands
from magicbyte.conversion import convert_batches
from magicbyte.errors import RefusedError

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "kafka"
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
MILLIS = 1_714_564_800_000


def built(**options: object) -> bytes:
    builder = RecordsBuilder(**options)  # type: ignore[arg-type]
    builder.append(0, MILLIS, b"k0", b"v0")
    builder.append(1, MILLIS + 1, None, b"x" * 100, [("h", b"1"), ("h", None)])
    builder.append(2, MILLIS + 2, b"\xff", None)
    return builder.build()


# --- arguments ----------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", list(Compression))
def test_codecs_by_name(codec: Compression) -> None:
    for name in (codec.name, codec.name.lower()):
        (batch,) = magicbyte.read_batches(built(compression=name))
        assert batch.compression is codec
        data, _ = convert_batches(built(), compression=name)
        assert next(magicbyte.read_batches(data)).compression is codec
    with pytest.raises(ValueError, match='no codec "brotli": expected one of none, gzip, snappy, lz4, zstd'):
        RecordsBuilder(compression="brotli")
    with pytest.raises(TypeError, match="compression"):
        RecordsBuilder(compression=1.5)  # type: ignore[arg-type]


def test_times_as_datetime() -> None:
    builder = RecordsBuilder()
    east = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    times = [
        NOON,
        east,
        NOON + timedelta(microseconds=1999),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
    ]
    for offset, time in enumerate(times):
        builder.append(offset, time, b"k")
    (batch,) = magicbyte.read_batches(builder.build())
    assert batch.columns().timestamps == [MILLIS, MILLIS, MILLIS + 1, -1]
    with pytest.raises(ValueError, match=r"timestamp: datetime.*has no time zone"):
        builder.append(0, datetime(2024, 5, 1, 12), b"k")
    assert RecordsBuilder(log_append_time=NOON, timestamp_type=1).record_count == 0
    log = PartitionLog(DATA / "v2_timestamps")
    first = next(iter(log.records())).timestamp
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=first)
    assert log.offset_for_timestamp(time) == log.offset_for_timestamp(first)
    later = [record.offset for record in log.records(start_timestamp=time)]
    assert later == [record.offset for record in log.records(start_timestamp=first)]


def test_text_and_headers() -> None:
    builder = RecordsBuilder()
    headers = {"a": "ä", "b": b"\xff", "c": None}
    for offset, given in enumerate([headers, MappingProxyType(headers), list(headers.items())]):
        builder.append(offset, 0, "schlüssel", "wert", given)
    builder.append_many([(3, 0, "schlüssel", "wert", headers)])
    (batch,) = magicbyte.read_batches(builder.build())
    for record in batch:
        assert (record.key_bytes, record.value_bytes) == ("schlüssel".encode(), b"wert")
        assert record.headers_raw == [(b"a", "ä".encode()), (b"b", b"\xff"), (b"c", None)]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("0", 0), r"^offset: "),
        ((0, "0"), r"^timestamp: "),
        ((0, 2**64), r"^timestamp: "),
        ((0, 0, 5), r"^key: expected"),
        ((0, 0, None, ["v"]), r"^value: expected"),
        ((0, 0, None, None, 5), r"^headers: expected a mapping or pairs of key and value, not int"),
        ((0, 0, None, None, "ab"), r"^headers: expected a mapping .* not str"),
        ((0, 0, None, None, ["ab"]), r"^headers\[0\]: expected a tuple of key and value, not str$"),
        ((0, 0, None, None, {"a": 5}), r"^header value: expected"),
    ],
)
def test_errors_name_the_argument(arguments: tuple[object, ...], error: str) -> None:
    builder = RecordsBuilder()
    with pytest.raises((TypeError, OverflowError), match=error):
        builder.append(*arguments)  # type: ignore[arg-type]
    assert builder.record_count == 0


def test_errors_of_the_callers_own_code_pass() -> None:
    class Broken(dict[str, bytes]):
        def items(self) -> object:  # type: ignore[override]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RecordsBuilder().append(0, 0, None, None, Broken())


# --- records and batches ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["v2_headers", "v1_gzip", "v0_none", "v2_nulls", "v2_txn"])
def test_records_compare_hash_and_pickle(name: str) -> None:
    log = PartitionLog(DATA / name)
    once = [record for batch in log.batches() for record in batch]
    again = [record for batch in PartitionLog(DATA / name).batches() for record in batch]
    assert once == again
    assert {*once} == {*again}
    assert len({*once}) == len(once)
    assert once[0] != once[1]
    assert once[0] != 0
    with pytest.raises(TypeError):
        _ = once[0] < once[1]  # type: ignore[operator]
    for other in (pickle.loads(pickle.dumps(once)), copy.deepcopy(once)):
        assert other == once
        assert [one.to_dict() for one in other] == [one.to_dict() for one in once]
        assert [one.control for one in other] == [one.control for one in once]
        assert [one.headers_raw for one in other] == [one.headers_raw for one in once]


def test_records_differ_in_every_field() -> None:
    def record(**fields: object) -> magicbyte.Record:
        builder = RecordsBuilder()
        given = {"offset": 1, "timestamp": 2, "key": b"k", "value": b"v", "headers": [("a", b"1")], **fields}
        builder.append(**given)  # type: ignore[arg-type]
        return next(magicbyte.read_batches(builder.build()))[0]

    one = record()
    assert one == record()
    others = {"offset": 3, "timestamp": 3, "key": None, "value": b"", "headers": [("a", None)]}
    for field, value in others.items():
        assert one != record(**{field: value}), field


@pytest.mark.parametrize(
    "arguments",
    [
        ((0, 0, 2, 0, 0), (None, None, b"", 0), (False, False)),
        ((0, 0, 0, 0, 0), (None, None, b"\x01", 5), (False, False)),
        ((0, 0, 0, 0, 0), (None, None, b"", 2**32 - 1), (False, False)),
    ],
)
def test_a_forged_pickle_is_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match=r"pickled|headersCount"):
        magicbyte._core.unpickle_record(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["v2_headers", "v1_gzip", "v0_none", "v2_nulls", "v2_txn"])
def test_batches_pickle_and_copy(name: str) -> None:
    batches = list(PartitionLog(DATA / name).batches())
    again = pickle.loads(pickle.dumps(batches))
    assert [type(one) for one in again] == [type(one) for one in batches]
    assert [one.to_bytes() for one in again] == [one.to_bytes() for one in batches]
    assert [one.position for one in again] == [one.position for one in batches]
    assert [list(one) for one in again] == [list(one) for one in batches]
    for batch in batches:
        # They cannot change.
        assert copy.copy(batch) is copy.deepcopy([batch])[0] is batch


def test_a_pickled_batch_is_read_as_before() -> None:
    data = built(compression="zstd")
    damaged = built().replace(b"v0", b"v1")
    for given, options, error in (
        (damaged, {}, magicbyte.CorruptRecordError),
        (damaged, {"check_crcs": False}, None),
        (data, {"max_decompressed_bytes": 10}, magicbyte.LimitExceededError),
        (data, {"max_decompressed_bytes": 1000}, None),
    ):
        (batch,) = magicbyte.read_batches(given, **options)  # type: ignore[arg-type]
        for one in (batch, pickle.loads(pickle.dumps(batch))):
            with nullcontext() if error is None else pytest.raises(error):
                assert len(list(one)) == 3


@pytest.mark.parametrize("data", [b"", b"abc", built()[:-1], built() + b"x", built() * 2, bytes(100)])
def test_a_forged_batch_is_refused(data: bytes) -> None:
    with pytest.raises(magicbyte.Error):
        magicbyte._core.unpickle_batch(data, 0, True, 1 << 20)


def test_batches_backwards() -> None:
    (batch,) = magicbyte.read_batches(built())
    assert list(reversed(batch)) == list(batch)[::-1]
    assert next(reversed(batch)).offset == 2
    assert list(reversed(next(magicbyte.read_batches(RecordsBuilder().empty_batch(5, 5))))) == []
    (damaged,) = magicbyte.read_batches(built()[:-1] + b"x")
    with pytest.raises(magicbyte.CorruptRecordError):
        reversed(damaged)


def test_patterns_of_batches_and_records() -> None:
    (batch,) = magicbyte.read_batches(built(compression="gzip"))
    match batch:
        case magicbyte.RecordBatch(2, last_offset, 0, size, Compression.GZIP, next_offset=3):
            assert (last_offset, size) == (2, batch.size_in_bytes)
        case _:
            pytest.fail("no match")
    match batch[0]:
        case magicbyte.Record(offset=0, key=key):
            assert key == b"k0"
        case _:
            pytest.fail("no match")


@pytest.mark.parametrize(
    ("headers", "error", "text"),
    [
        (
            [("a", b"1"), ("b", b"2", b"3")],
            ValueError,
            "headers[1]: expected a tuple of key and value, not a tuple of 3",
        ),
        ([("a",)], ValueError, "headers[0]: expected a tuple of key and value, not a tuple of 1"),
        ([("a", b"1"), None], TypeError, "headers[1]: expected a tuple of key and value, not NoneType"),
        (
            [("a", b"1")] * 9 + [["b", b"2"]],
            TypeError,
            "headers[9]: expected a tuple of key and value, not list",
        ),
        (iter([b"ab"]), TypeError, "headers[0]: expected a tuple of key and value, not bytes"),
    ],
)
def test_headers_that_are_no_pairs(headers: object, error: type[Exception], text: str) -> None:
    builder = RecordsBuilder()
    with pytest.raises(error) as raised:
        builder.append(0, 0, headers=headers)  # type: ignore[arg-type]
    assert str(raised.value) == text
    assert builder.record_count == 0


def test_paths_of_any_kind(tmp_path: Path) -> None:
    class Mine:
        def __init__(self, path: str | bytes) -> None:
            self.path = path

        def __fspath__(self) -> str | bytes:
            return self.path

    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(built())
    path = str(tmp_path / "t-0")
    for one in (path, path.encode(), Path(path), Mine(path), Mine(path.encode())):
        assert len(list(PartitionLog(one).records())) == 3  # type: ignore[arg-type]
        assert magicbyte.verify(one)["total"]["rows"] == 3  # type: ignore[arg-type]
        assert magicbyte.verify([one])["total"]["rows"] == 3  # type: ignore[list-item]
        assert magicbyte.Log(one).topics == ["t"]  # type: ignore[arg-type]
    out = tmp_path / "out"
    assert magicbyte.convert(path.encode(), str(out).encode())
    assert len(list(PartitionLog(out / "t-0").records())) == 3
    for wrong in (5, None, 1.5):
        with pytest.raises(TypeError, match=f"not {type(wrong).__name__}$"):
            PartitionLog(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=f"^sources: expected a path .* not {type(wrong).__name__}$"):
            magicbyte.verify(wrong)  # type: ignore[arg-type]


def test_repr_is_short() -> None:
    (batch,) = magicbyte.read_batches(built())
    assert repr(batch[0]) == f"<Record offset=0 timestamp={MILLIS} key=b'k0' value=b'v0' headers=0>"
    assert repr(batch[1]).endswith(f"key=None value={b'x' * 40!r}... (100 bytes) headers=2>")


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_batches_are_sequences(magic: int, compression: str) -> None:
    builder = RecordsBuilder(magic, compression)
    for offset in range(5):
        builder.append(offset, 0, b"k%d" % offset, b"v")
    for batch in magicbyte.read_batches(builder.build()):
        records = list(batch)
        assert len(batch) == len(records)
        assert list(batch[:]) == records
        assert batch[-1] == records[-1]
        assert batch[::-2] == records[::-2]
        assert [batch[at] for at in range(len(batch))] == records
        assert batch
        for index in (len(batch), -len(batch) - 1, 2**40):
            with pytest.raises(IndexError, match="of a batch of"):
                batch[index]
        with pytest.raises(TypeError):
            batch["0"]  # type: ignore[call-overload]


def test_a_bad_batch_raises_when_its_records_are_requested() -> None:
    data = bytearray(built())
    data[-1] ^= 1
    (batch,) = magicbyte.read_batches(bytes(data))
    assert batch
    for work in (len, list, lambda one: one[0]):
        with pytest.raises(magicbyte.CorruptRecordError):
            work(batch)


# --- logs ---------------------------------------------------------------------------------------


def test_a_directory_of_partitions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no segments of its own, but \d+ partitions: open one of them"):
        PartitionLog("samples")
    with pytest.raises(ValueError, match="expected a partition's directory"):
        PartitionLog(tmp_path)
    named = tmp_path / "orders-0"
    named.mkdir()
    (named / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    assert PartitionLog(named).segments == []


def test_a_closed_log_raises() -> None:
    log = PartitionLog(DATA / "v2_none")
    with log as same:
        assert same is log
        under_way = log.records()
        next(under_way)
        stream = log.to_arrow()
    assert log.closed
    for work in (
        log.records,
        log.batches,
        log.verify,
        log.rescue,
        log.to_arrow,
        lambda: log.offset_for_timestamp(0),
    ):
        with pytest.raises(ValueError, match=r"the log .* is closed"):
            work()
    with pytest.raises(ValueError, match="is closed"), log:
        pass
    assert sum(1 for _ in under_way) == 345
    assert stream.end_offset is None


def test_a_directory_as_one_log() -> None:
    log = magicbyte.Log("samples")
    assert [one.name for one in log] == [one.name for one in log.partitions]
    assert len(log) == len(log.partitions) > 3
    assert log.topics == sorted({one.topic for one in log})
    clicks = log.partition("clicks")
    assert clicks.verify() == PartitionLog(Path("samples/clicks-0").absolute()).verify()
    with pytest.raises(KeyError, match="no partition nothing-0 in samples"):
        log.partition("nothing")
    chosen = magicbyte.Log(["samples"], PartitionChoice(topics=("clicks",)))
    assert chosen.topics == ["clicks"]
    with pytest.raises(RefusedError, match="no partition is chosen"):
        magicbyte.Log("samples", PartitionChoice(topics=("none",)))
    for shown in (log, clicks, clicks.verify()):
        assert shown._repr_html_().startswith("<table>")
        assert "clicks" in shown._repr_html_()
    assert repr(log) in log._repr_html_().replace("&lt;", "<").replace("&gt;", ">")


def test_html_is_escaped_and_bounded() -> None:
    from magicbyte.html import table

    page = table("<b>", ("a",), [("<script>",)] * 60)
    assert "<script>" not in page
    assert page.count("<tr>") == 52
    assert "and 10 more" in page


# --- commands as functions ----------------------------------------------------------------------


def test_commands_are_functions(tmp_path: Path) -> None:
    report = magicbyte.verify("samples")
    assert report["balanced"]
    tables = magicbyte.ingest(["samples"], tmp_path / "tables", key_as="string")
    assert tables["total"]["rows"] == report["total"]["rows"]
    source = "samples/clicks-0"
    converted = commands.convert(source, tmp_path / "converted", compression="zstd")
    assert {
        batch.compression.name for batch in PartitionLog(tmp_path / "converted" / "clicks-0").batches()
    } == {"ZSTD"}
    assert converted["balanced"]
    with pytest.raises(ValueError, match="compression: 'xz' is not one of none, gzip"):
        commands.convert(source, tmp_path / "no", compression="xz")
    assert magicbyte.recover(source, tmp_path / "recovered", method="truncate")["balanced"]
    assert commands.rescue(source)["ranges"] == []
    assert magicbyte.stats(source)["partitions"][0]["topic"] == "clicks"
    assert magicbyte.explain(source)[0]["topic"] == "clicks"
    assert magicbyte.field_costs(source)["topics"]
    assert magicbyte.advise(source, windows=2, window_bytes=1 << 16)["topics"]
    assert magicbyte.topics("samples")["topics"]
    with pytest.raises(RefusedError, match="__consumer_offsets"):
        magicbyte.offsets(source)


def test_dir_is_tidy() -> None:
    assert dir(magicbyte) == sorted(magicbyte.__all__)
    for name in magicbyte.__all__:
        assert getattr(magicbyte, name) is not None


def test_importing_loads_little() -> None:
    code = "import magicbyte, sys; print(*sorted({'dataclasses', 'pyarrow', 'pandas'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "\n"
