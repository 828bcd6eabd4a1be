"""Hostile callers: objects that lie, raise, change or call back; threads; the garbage collector.

Whatever they do, the answer is a value or an ordinary exception: no panic, no crash, no wait without end,
and what their own code raises comes through.
"""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow as pa
import pytest
from magicbyte import Compression, InternalError, PartitionLog, RecordsBuilder, _core
from magicbyte.broker import AppendConfig, AppendValidator, PartitionSimulator
from magicbyte.compat import _core as dropins
from magicbyte.compat import aiokafka, kafka_python

HERE = Path(__file__).parent
FORMATS = [(2, 0), (2, 4), (1, 0), (1, 1), (0, 1)]


def built(magic: int = 2, codec: int = 4, records: int = 5, base: int = 0, size: int = 5) -> bytes:
    builder = RecordsBuilder(magic, codec)
    for offset in range(base, base + records):
        builder.append(offset, 1, b"k", bytes([offset % 256]) * size)
    return builder.build()


V2 = built()
V1 = built(1, 1)
MANY = b"".join(built(records=20, base=20 * n, size=300) for n in range(60))


# --- Arrow capsules ------------------------------------------------------------------------------------


class Given:
    """Hands out the same capsules each time."""

    def __init__(self, **capsules: Any) -> None:
        for name, capsule in capsules.items():
            setattr(self, name, lambda requested_schema=None, capsule=capsule: capsule)


ROWS = {"value": pa.array([b"x" * 3000] * 100), "key": pa.array([b"y"] * 100)}


@pytest.mark.parametrize("used_by", ["pyarrow", "magicbyte"])
def test_capsules_that_were_used_up(used_by: str) -> None:
    rows = Given(__arrow_c_array__=pa.record_batch(ROWS).__arrow_c_array__())
    stream = Given(__arrow_c_stream__=pa.table(ROWS).__arrow_c_stream__())
    if used_by == "pyarrow":
        pa.RecordBatch._import_from_c_capsule(*rows.__arrow_c_array__())
        pa.RecordBatchReader._import_from_c_capsule(stream.__arrow_c_stream__())
    else:
        assert RecordsBuilder().append_arrow(rows) == RecordsBuilder().append_arrow(stream) == 100
    gc.collect()
    for used in (rows, stream):
        builder = RecordsBuilder()
        with pytest.raises(ValueError, match="was already consumed"):
            builder.append_arrow(used)
        assert builder.record_count == 0


def test_one_capsule_of_two_is_used_up() -> None:
    schema, _ = pa.record_batch(ROWS).__arrow_c_array__()
    pa.Schema._import_from_c_capsule(schema)
    _, array_capsule = pa.record_batch(ROWS).__arrow_c_array__()
    with pytest.raises(ValueError, match="schema was already consumed"):
        RecordsBuilder().append_arrow(Given(__arrow_c_array__=(schema, array_capsule)))


def test_a_requested_schema_that_was_used_up() -> None:
    capsule = pa.schema([("offset", pa.int64()), ("value", pa.binary())]).__arrow_c_schema__()
    pa.Schema._import_from_c_capsule(capsule)
    (batch,) = magicbyte.read_batches(V2)
    for asked in (
        batch.__arrow_c_array__,
        batch.__arrow_c_stream__,
        magicbyte.read_batches(V2).__arrow_c_stream__,
    ):
        with pytest.raises(ValueError, match="was already consumed"):
            asked(capsule)


def test_rows_that_are_null() -> None:
    values = pa.array([b"a", b"b", b"c"])
    rows = pa.StructArray.from_arrays([values], names=["value"], mask=pa.array([False, False, True]))
    chunks = pa.chunked_array([rows])
    for null in (rows, rows.slice(1), chunks):
        with pytest.raises(ValueError, match=r"row [12] of the Arrow batch is null"):
            RecordsBuilder().append_arrow(null)
    assert RecordsBuilder().append_arrow(rows.slice(0, 2)) == 2


def test_a_stream_that_fails() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch(ROWS)
        raise RuntimeError("no more")

    schema = pa.record_batch(ROWS).schema
    with pytest.raises(RuntimeError, match="no more"):
        RecordsBuilder().append_arrow(pa.RecordBatchReader.from_batches(schema, batches()))


@pytest.mark.parametrize("capsules", [None, (), (1, 2), (None, None), "ab", ({}, {}), 7])
def test_invalid_capsules(capsules: Any) -> None:
    for name in ("__arrow_c_array__", "__arrow_c_stream__"):
        with pytest.raises((TypeError, ValueError)):
            RecordsBuilder().append_arrow(Given(**{name: capsules}))


# --- Objects that lie and raise ------------------------------------------------------------------------


class Mine(BaseException):
    """Raised by the caller's own code; nothing else may catch it."""


class Raising:
    """Raises whatever is asked of it."""

    def _raise(self, *_: Any) -> Any:
        raise Mine

    __len__ = __getitem__ = __iter__ = __index__ = __int__ = __float__ = __bool__ = __contains__ = _raise
    __eq__ = __hash__ = __str__ = __repr__ = __bytes__ = __fspath__ = __buffer__ = _raise
    __arrow_c_array__ = __arrow_c_stream__ = __arrow_c_schema__ = __call__ = keys = items = _raise


class Lying:
    """Claims an enormous length, and has one item."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        if index > 0:
            raise IndexError
        return "offset"


class Index:
    """An integer with another value each time, or none."""

    def __init__(self, *values: Any) -> None:
        self.values = list(values)

    def __index__(self) -> Any:
        return self.values.pop(0) if len(self.values) > 1 else self.values[0]


def hostile() -> list[Any]:
    released = memoryview(bytearray(b"abc"))
    released.release()
    recursive: list[Any] = []
    recursive.append(recursive)
    return [
        Raising(), Lying(2**62), Lying(2**45), Lying(-1), Index(2**63), Index(-(2**63)), Index("x"),
        Index(0, 2**70), 2**63, -(2**63), 2**200, True, 1.5, float("nan"), None, object(), type, b"",
        bytearray(b"\0" * 70), "x\udcff", "\0", released, memoryview(b"abcdef")[::2],
        memoryview(array("d", [1.0])), array("i", [1, 2]), recursive, {},
        [Raising()], (Raising(),) * 4, [(0, 0, Raising(), None)], iter([1, 2]), Exception, V2, V1,
        Given(__arrow_c_array__=(1, 2)), {"offset": Raising()}, (b"k",) * 5,
    ]  # fmt: skip


def entry_points() -> dict[str, Callable[[Any], Any]]:
    """Calls of the public API with one argument left open."""
    c: Any = _core
    batch: Any = next(iter(magicbyte.read_batches(V2)))
    record: Any = next(iter(batch))
    config = AppendConfig()
    default: Any = kafka_python.DefaultRecordBatchBuilder(2, 4, False, -1, -1, -1, 1000)
    other: Any = aiokafka.DefaultRecordBatchBuilder(2, 4, 0, -1, -1, -1, 1000)
    legacy: Any = kafka_python.LegacyRecordBatchBuilder(1, 1, 1000)
    calls: dict[str, Callable[[Any], Any]] = {
        "read_batches": lambda it: list(magicbyte.read_batches(it)),
        "max_decompressed_bytes": lambda it: magicbyte.read_batches(V2, max_decompressed_bytes=it),
        "columns": lambda it: magicbyte.read_batches(V2).to_arrow(it),
        "threads": lambda it: magicbyte.read_batches(V2).to_arrow(threads=it),
        "start_offset": lambda it: pa.table(magicbyte.read_batches(V2).to_arrow(start_offset=it)),
        "requested_schema": lambda it: magicbyte.read_batches(V2).__arrow_c_stream__(it),
        "batch.to_arrow": lambda it: batch.to_arrow(it),
        "batch.array": lambda it: batch.__arrow_c_array__(it),
        "crc32c": lambda it: magicbyte.crc32c(it),
        "crc32c value": lambda it: magicbyte.crc32c(b"", it),
        "decode_varint": lambda it: magicbyte.decode_varint(it),
        "decode_varint at": lambda it: magicbyte.decode_varint(b"\2", it),
        "encode_varint": lambda it: magicbyte.encode_varint(it),
        "convert": lambda it: magicbyte.convert_batches(it, magic=2),
        "offset_index": lambda it: c.offset_index(it, 0),
        "producer_snapshot": lambda it: c.producer_snapshot(it),
        "checkpoint": lambda it: c.leader_epoch_checkpoint(it),
        "decompress": lambda it: c.decompress(4, 2, it),
        "list_partition": lambda it: c.list_partition(it),
        "plan_partition": lambda it: c.plan_partition("{}", it),
        "reconcile": lambda it: c.reconcile("{}", it),
        "index_keys": lambda it: c.index_keys(it),
        "producer_summary": lambda it: c.producer_summary([], it),
        "log": PartitionLog,
        "epochs": c.LeaderEpochs,
        "filter": c.AbortedFilter,
        "stray": lambda it: c.ProducerStateManager({}).remove_stray_snapshots(it),
        "snapshots": c.ProducerStateManager,
        "together": lambda it: c.ProducerStateManager({}).apply_together(it),
        "validate": lambda it: AppendValidator(config).validate(it, next_offset=0),
        "simulator.append": lambda it: PartitionSimulator(config).append(it),
        "simulator.fetch": lambda it: PartitionSimulator(config).fetch(it),
        "simulator.list": lambda it: PartitionSimulator(config).list_offsets(it),
        "last_header": lambda it: record.last_header(it),
        "headers_for": lambda it: record.headers_for(it),
        "attribute": lambda it: getattr(record, it) if isinstance(it, str) else None,
        "append_many": lambda it: RecordsBuilder().append_many(it),
        "append_many one": lambda it: RecordsBuilder().append_many([it]),
        "append_arrow": lambda it: RecordsBuilder().append_arrow(it),
        "base_offset": lambda it: RecordsBuilder(base_offset=it).append(0, 0),
        "max_size": lambda it: RecordsBuilder(max_size_in_bytes=it).append(0, 0),
        "memory_records": lambda it: list(kafka_python.MemoryRecords(it)),
        "aiokafka.memory_records": lambda it: list(aiokafka.MemoryRecords(it)),
        "default_batch": lambda it: list(kafka_python.DefaultRecordBatch(it)),
        "legacy_batch": lambda it: list(kafka_python.LegacyRecordBatch(it, 1)),
        "size_of": lambda it: default.size_of(it, it, []),
        "encode": lambda it: dropins.kafka_python_encode_varint(it, it),
    }
    for position, name in enumerate(["offset", "timestamp", "key", "value", "headers"]):

        def fill(it: Any, position: int = position) -> list[Any]:
            return [it if at == position else plain for at, plain in enumerate([0, 0, b"k", b"v", []])]

        calls[f"append {name}"] = lambda it, fill=fill: RecordsBuilder().append(*fill(it))
        calls[f"kafka-python append {name}"] = lambda it, fill=fill: default.append(*fill(it))
        calls[f"aiokafka append {name}"] = lambda it, fill=fill: other.append(*fill(it))
        calls[f"legacy append {name}"] = lambda it, fill=fill: legacy.append(*fill(it))
        calls[f"record {name}"] = lambda it, fill=fill: c.KafkaPythonDefaultRecord(0, 0, *fill(it))
    return calls


def test_hostile_objects() -> None:
    for name, call in entry_points().items():
        for object_ in hostile():
            try:
                call(object_)
            except InternalError as error:
                pytest.fail(f"{name} of a {type(object_).__name__} panicked: {error}")
            except Mine:
                pass
            except MemoryError:
                pytest.fail(f"{name} of a {type(object_).__name__} reserved too much memory")
            except Exception:
                pass


@pytest.mark.skipif(sys.version_info < (3, 12), reason="buffers of Python classes")
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, Mine, ZeroDivisionError])
def test_what_a_buffer_raises(error: type[BaseException]) -> None:
    class Buffer:
        def __buffer__(self, flags: int) -> memoryview:
            raise error

    for call in (magicbyte.crc32c, magicbyte.read_batches, kafka_python.MemoryRecords):
        with pytest.raises(error):
            call(Buffer())  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, Mine, ZeroDivisionError])
def test_what_an_integer_raises(error: type[BaseException]) -> None:
    class Number:
        def __index__(self) -> int:
            raise error

        __int__ = __index__

    default: Any = aiokafka.DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1000)
    for call in (
        lambda it: RecordsBuilder().append(it, 0),
        lambda it: default.append(it, 0, b"", b"", []),
        lambda it: default.append(0, it, b"", b"", []),
    ):
        with pytest.raises(error):
            call(Number())


def test_a_released_buffer_is_an_error() -> None:
    view = memoryview(b"abc")
    view.release()
    with pytest.raises(ValueError, match="released"):
        magicbyte.crc32c(view)
    with pytest.raises(ValueError, match="released"):
        kafka_python.MemoryRecords(view)


def test_lengths_that_lie() -> None:
    for length in (2**62, 2**45):
        table = pa.table(magicbyte.read_batches(V2).to_arrow(Lying(length)))  # type: ignore[arg-type]
        assert table.column_names == ["offset"]


def test_lists_that_change_while_they_are_read() -> None:
    rows: list[Any] = []

    class Changing:
        """An offset that empties the list it is in, and lets the memory be reused."""

        def __index__(self) -> int:
            rows.clear()
            rows.extend([(9, 0, b"other", None)] * 3)
            return 5

    rows.extend(
        [(1, 0, b"k", None), (Changing(), 0, bytes(bytearray(b"gone" * 100)), None), (7, 0, b"k", None)]
    )
    builder = RecordsBuilder()
    builder.append_many(rows)
    found = [record.offset for batch in magicbyte.read_batches(builder.build()) for record in batch]
    assert found == [1, 5, 9]


def test_calls_from_within_a_call() -> None:
    builder = RecordsBuilder()
    depth = 0

    class Again:
        def __index__(self) -> int:
            nonlocal depth
            depth += 1
            builder.append(depth, 0, b"inside", None)
            return 10 + depth

    builder.append(Again(), 0, b"outside", None)  # type: ignore[arg-type]
    builder.append_many(
        (offset, 0, b"k", None) for offset in (builder.record_count + 20, builder.record_count + 30)
    )
    assert builder.record_count == 4

    def writes(byte: int) -> None:
        dropins.kafka_python_encode_varint(1, [].append)

    assert dropins.kafka_python_encode_varint(300, writes) == 2


def test_a_bytearray_stays_the_callers() -> None:
    mutable = bytearray(MANY)
    batches = magicbyte.read_batches(mutable)
    first = next(batches)
    del mutable[:]
    assert len(list(first)) == 20
    assert sum(len(list(batch)) for batch in batches) == 59 * 20


# --- Threads, finalizers, the collector ----------------------------------------------------------------


def in_threads(work: Callable[[], Any], count: int = 4) -> list[Any]:
    """What each of several threads returned or raised."""
    results: list[Any] = []
    start = threading.Barrier(count)

    def run() -> None:
        start.wait()
        try:
            results.append(work())
        except BaseException as error:
            results.append(error)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "waits without end"
    for result in results:
        assert not isinstance(result, BaseException), repr(result)
    return results


@pytest.fixture
def impatient() -> Iterator[None]:
    """Makes threads switch as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("threads", [1, 4])
def test_threads_at_one_arrow_stream(threads: int) -> None:
    for views in (False, True):
        stream = magicbyte.read_batches(MANY * 4).to_arrow(threads=threads, views=views, columns=["value"])
        reader = pa.RecordBatchReader.from_stream(stream)
        rows = in_threads(lambda reader=reader: sum(batch.num_rows for batch in reader))
        assert sum(rows) == 4 * 1200


@pytest.mark.usefixtures("impatient")
def test_threads_at_one_stream_that_fails() -> None:
    bad = bytearray(MANY)
    bad[-5] ^= 1
    for _ in range(20):
        reader = pa.RecordBatchReader.from_stream(magicbyte.read_batches(bytes(bad)).to_arrow(threads=2))

        def work(reader: Any = reader) -> str:
            try:
                return str(sum(batch.num_rows for batch in reader))
            except pa.ArrowInvalid as error:
                return str(error)

        texts = in_threads(work)
        assert sum("CRC mismatch" in text for text in texts) == 1, texts


@pytest.mark.usefixtures("impatient")
def test_threads_at_one_iterator(tmp_path: Path) -> None:
    def drain(iterator: Any) -> int:
        count = 0
        for _ in iterator:
            count += 1
        return count

    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(MANY)
    log = magicbyte.PartitionLog(tmp_path / "t-0")
    for _ in range(5):
        for make, total in (
            (lambda: magicbyte.read_batches(MANY), 60),
            (lambda: iter(next(magicbyte.read_batches(MANY))), 20),
            (lambda: kafka_python.MemoryRecords(MANY), 60),
            (lambda: aiokafka.MemoryRecords(MANY), 60),
            (log.batches, 60),
            (log.records, 1200),
        ):
            one: Any = make()
            assert sum(in_threads(lambda one=one: drain(one))) == total


@pytest.mark.usefixtures("impatient")
def test_threads_at_one_error() -> None:
    """It is created after the lock is released, and one of them gets it."""
    for _ in range(300):
        batches = magicbyte.read_batches(b"\0" * 8 + b"\xff" * 60)

        def work(batches: Any = batches) -> int:
            try:
                return len(list(batches))
            except magicbyte.Error:
                return 1

        assert sum(in_threads(work)) == 1


@pytest.mark.usefixtures("impatient")
def test_threads_at_one_simulator() -> None:
    partition = PartitionSimulator(clock=1)

    def work() -> None:
        for _ in range(300):
            with pytest.raises(magicbyte.Error):
                partition.truncate(-5)
            partition.append(V2)
            assert partition.log_end_offset >= partition.log_start_offset
            partition.fetch(0, 100)

    in_threads(work)
    assert partition.log_end_offset == 4 * 300 * 5


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_threads_at_one_builder(magic: int, codec: int) -> None:
    builder = RecordsBuilder(magic, codec)
    default: Any = kafka_python.DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 30)
    legacy: Any = kafka_python.LegacyRecordBatchBuilder(min(magic, 1), min(codec, 1), 1 << 30)
    offsets = iter(range(10**9))
    appended: list[int] = []
    built: list[int] = []

    def records(made: bytes) -> int:
        return sum(1 for batch in magicbyte.read_batches(made) for _ in batch)

    def work() -> int:
        for _ in range(200):
            offset = next(offsets)
            try:
                builder.append(offset, 1, b"k", b"v" * 100)
                appended.append(offset)
            except magicbyte.Error as error:
                # Another thread was faster.
                if error.kind != "offset_out_of_range":
                    raise
            default.append(offset, 1, b"k", b"v" * 100, [])
            legacy.append(offset, 1, b"k", b"v" * 100)
            if offset % 50 == 49:
                # Empty if another thread has built just now.
                built.append(records(builder.build()))
                assert records(bytes(default.build())) > 0
                assert records(bytes(legacy.build())) > 0
            assert builder.record_count >= 0
            assert builder.estimated_size_in_bytes >= 0
        return 1

    assert sum(in_threads(work)) == 4
    assert sum(built) + records(builder.build()) == len(appended)
    assert len(list(kafka_python.DefaultRecordBatch(default.build()))) == 800


def test_a_finalizer_that_wants_the_builder() -> None:
    """Bytes that an Arrow stream drops without the GIL are freed by the next thread that holds it."""

    class Tracked(bytes):
        def __del__(self) -> None:
            builder.append(10**6, 0, b"", b"")
            finalized.set()

    finalized = threading.Event()
    builder = RecordsBuilder(2, Compression.ZSTD, 19)
    values = random.Random(1)
    for offset in range(600):
        builder.append(offset, offset, b"k", values.randbytes(1500) * 3)
    readers = [
        pa.RecordBatchReader.from_stream(magicbyte.read_batches(Tracked(MANY * 10)).to_arrow(threads=4))
    ]
    readers[0].read_next_batch()

    def let_go() -> None:
        time.sleep(0.05)
        readers.clear()

    in_threads(lambda: (let_go(), builder.build())[0], count=2)
    gc.collect()
    builder.build()
    assert finalized.wait(60)


def workload() -> None:
    """A little of everything, used correctly and incorrectly."""
    for magic, codec in FORMATS:
        builder = RecordsBuilder(magic, codec)
        for offset in range(20):
            builder.append(offset, 1, b"k", b"v" * 50, [("h", b"x")] if magic == 2 else None)
        data = builder.build()
        for batch in magicbyte.read_batches(bytearray(data)):
            for record in batch:
                assert (record.key, record.value_bytes, repr(record), record.headers) is not None
            batch.columns()
            pa.record_batch(batch)
        pa.table(magicbyte.read_batches(data).to_arrow(threads=2, views=True))
        magicbyte.convert_batches(data, magic=2)
        for read in (kafka_python.MemoryRecords, aiokafka.MemoryRecords):
            for batch in read(data):
                list(batch)
    partition = PartitionSimulator()
    partition.append(V2)
    partition.fetch(0)
    partition.list_offsets("max_timestamp")
    test_hostile_objects()


def test_the_collector_at_every_allocation() -> None:
    before = gc.get_threshold()
    # A full collection visits everything that pytest and pyarrow made: too slow to repeat each time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(1, 1, 1)
    try:
        workload()
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def run_alone(code: str, **environment: str) -> str:
    """Runs the workload in its own process, which must not crash."""
    alone = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code],
        capture_output=True, text=True, timeout=120, env={**os.environ, **environment}, cwd=HERE, check=False,
    )  # fmt: skip
    assert alone.returncode == 0, alone.stderr[-2000:]
    return alone.stdout


def test_the_allocator_that_checks() -> None:
    run_alone("import test_hostile_callers as t; t.workload()", PYTHONMALLOC="debug", PYTHONPATH=_path())


def _path() -> str:
    return os.pathsep.join([str(HERE), *(entry for entry in sys.path if entry)])


SECOND = """
import sys
{interpreters}
run = "try: import magicbyte\\nexcept ImportError as error: print('refused:', error)"
import magicbyte
second(run)
for name in [name for name in sys.modules if name.split(".")[0] == "magicbyte"]:
    del sys.modules[name]
exec(run)
"""
INTERPRETERS = """
if sys.version_info >= (3, 13):
    import _interpreters
    config = _interpreters.new_config("isolated")
    config.gil, config.use_main_obmalloc = "shared", False
    identity = _interpreters.create(config)
    second = lambda code: _interpreters.exec(identity, code)
else:
    import _xxsubinterpreters
    identity = _xxsubinterpreters.create()
    second = lambda code: _xxsubinterpreters.run_string(identity, code)
"""


def test_one_module_a_process() -> None:
    """A second interpreter and a second import are refused; the first keeps working."""
    code = SECOND.format(interpreters=INTERPRETERS)
    code += "\ntry: list(magicbyte.read_batches(b'\\0' * 80))"
    code += "\nexcept magicbyte.Error: print('the first is sound')"
    lines = run_alone(code, PYTHONPATH=_path()).splitlines()
    assert [line.split(":")[0] for line in lines] == ["refused", "refused", "the first is sound"], lines
    # Python 3.12 itself refuses a second interpreter.
    assert "once a process" in lines[1]
