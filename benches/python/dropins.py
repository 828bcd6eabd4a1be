"""What a drop-in gains: batches parsed and built by the original classes and by ours, in turn, on the
same records. Writes the table of docs/dropins.md.

CPU time, medians of the turns' ratios. Parsing checks each batch's CRC and takes each record's key and
value; an unnoticed flipped byte or a missing record fails the bench.
"""

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import aiokafka.record._crecords as aiokafka_original  # type: ignore[import-untyped]
import kafka.record.default_records as kafka_python_default  # type: ignore[import-untyped]
import kafka.record.memory_records as kafka_python_memory  # type: ignore[import-untyped]
from bench import Bench
from magicbyte.compat import aiokafka, kafka_python
from ratios import Comparison, in_turn, millions

PAGE = Path(__file__).parents[2] / "docs" / "dropins.md"
NOW = 1_700_000_000_000
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
# Records per batch, headers per record.
SHAPES = {"1000 records": (1000, 0), "1000 records, 3 headers": (1000, 3), "10 records": (10, 0)}
CASES = [
    *(("1000 records", codec) for codec in CODECS),
    ("1000 records, 3 headers", "none"),
    ("10 records", "none"),
    ("10 records", "lz4"),
]
# aiokafka's classes are compiled, kafka-python's are not, so they get fewer records.
CLIENTS: dict[str, tuple[Any, Any, Any, int]] = {
    "aiokafka": (aiokafka, aiokafka_original, aiokafka_original, 40_000),
    "kafka-python": (kafka_python, kafka_python_memory, kafka_python_default, 4_000),
}
Record = tuple[int, bytes, bytes, list[tuple[str, bytes]]]


def records(count: int, headers: int) -> list[Record]:
    """Keys of 16 bytes, JSON values of about 100."""
    chance = random.Random(1)
    return [
        (
            NOW + number,
            b"%016d" % chance.getrandbits(40),
            b'{"id": %d, "user": "user-%d", "amount": %.2f, "items": [%d, %d], "note": "delivered"}'
            % (number, chance.randrange(5000), chance.random() * 99, *chance.choices(range(900), k=2)),
            [(f"header{one}", b"%d" % chance.getrandbits(30)) for one in range(headers)],
        )
        for number in range(count)
    ]


def build(builders: Any, codec: int, each: list[Record], batches: int) -> bytearray:
    """Builds this many batches of the same records, and returns the last."""
    for _ in range(batches):
        builder = builders.DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 30)
        append = builder.append
        for offset, (timestamp, key, value, headers) in enumerate(each):
            append(offset, timestamp, key, value, headers)
        built = builder.build()
    assert isinstance(built, bytearray)
    return built


def parse(readers: Any, data: bytes) -> int:
    """The number of records that a consumer gets."""
    found = 0
    fetched = readers.MemoryRecords(data)
    while fetched.has_next():
        batch = fetched.next_batch()
        if not batch.validate_crc():
            raise ValueError("wrong CRC")
        for record in batch:
            _, _ = record.key, record.value
            found += 1
    return found


def must_check(readers: Any, data: bytes) -> None:
    flipped = bytearray(data)
    flipped[-10] ^= 1
    try:
        parse(readers, bytes(flipped))
    except ValueError:
        return
    raise AssertionError("a flipped byte was not found")


def rate(work: Callable[[], object], count: int) -> float:
    start = time.process_time()
    work()
    return count / (time.process_time() - start)


def beside(ours: Callable[[], object], original: Callable[[], object], count: int, turns: int) -> Comparison:
    rates = in_turn({"ours": partial(rate, ours, count), "original": partial(rate, original, count)}, turns)
    return Comparison(rates["ours"], rates["original"])


def compare(client: str, codec: int, each: list[Record], turns: int) -> tuple[Comparison, Comparison]:
    """Parses and builds these records repeatedly."""
    ours, readers, builders, most = CLIENTS[client]
    batches = most // len(each)
    count = batches * len(each)
    data = bytes(build(ours, codec, each, 1)) * batches
    for side in (ours, readers):
        must_check(side, data)
        assert parse(side, data) == count
    return (
        beside(lambda: parse(ours, data), lambda: parse(readers, data), count, turns),
        beside(
            lambda: build(ours, codec, each, batches),
            lambda: build(builders, codec, each, batches),
            count,
            turns,
        ),
    )


def measure(bench: Bench) -> None:
    table = [
        "| batches | codec | parse, against aiokafka | build | parse, against kafka-python | build |",
        "|---|---|---|---|---|---|",
    ]
    for shape, codec in CASES:
        each = records(*SHAPES[shape])
        both = [compare(client, CODECS[codec], each, bench.turns) for client in CLIENTS]
        cells = [f"{one.ratio:.2f} ({millions(one.ours)} M/s)" for pair in both for one in pair]
        table.append(f"| {shape} | {codec} | {' | '.join(cells)} |")
        print(table[-1], flush=True)
    before, rest = PAGE.read_text().split("<!-- bench -->\n")
    after = rest[rest.index("<!-- /bench -->") :]
    PAGE.write_text("\n".join([before + "<!-- bench -->", *table, after]))
