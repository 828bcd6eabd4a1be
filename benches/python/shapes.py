"""The study's data: four shapes of records, the same bytes wherever they are made."""

import json
import random
import struct
from collections.abc import Callable, Iterator

from magicbyte import RecordsBuilder

Record = tuple[bytes | None, bytes, list[tuple[str, bytes]]]
Shape = Callable[[random.Random], Iterator[Record]]

TIME = 1_700_000_000_000
_NAMES = ("ada", "ben", "chen", "dora", "emil", "fatima", "grace", "hugo", "ines", "jonas", "kim", "lena")
_WORDS = (
    "order", "payment", "cart", "search", "login", "logout", "refund", "invoice", "parcel", "basket",
    "coupon", "wishlist", "review", "rating", "checkout", "address", "delivery", "return", "shipment",
    "warehouse", "supplier", "customer", "account", "session",
)  # fmt: skip


def events(chance: random.Random) -> Iterator[Record]:
    """JSON of a web shop: about 230 bytes, keyed by the user."""
    for number in range(1 << 60):
        user = chance.randrange(20_000)
        body = {
            "id": f"{chance.getrandbits(64):016x}",
            "type": f"{chance.choice(_WORDS)}.{chance.choice(('created', 'updated', 'viewed', 'deleted'))}",
            "user": {"id": user, "name": chance.choice(_NAMES), "country": chance.choice(("DE", "FR", "US"))},
            "at": TIME + 7 * number,
            "amount": chance.randrange(100, 100_000) / 100,
            "tags": [chance.choice(_WORDS) for _ in range(chance.randrange(4))],
            "ok": chance.random() < 0.98,
        }
        yield str(user).encode(), json.dumps(body).encode(), []


def sensors(chance: random.Random) -> Iterator[Record]:
    """Binary measurements: 28 bytes, keyed by the sensor, whose values change little."""
    values = [20.0 + chance.random() * 5 for _ in range(500)]
    for number in range(1 << 60):
        sensor = chance.randrange(len(values))
        values[sensor] += chance.randrange(-10, 11) / 100
        body = struct.pack(">IQdfI", sensor, TIME + 3 * number, values[sensor], 0.5, 0)
        yield struct.pack(">I", sensor), body, []


def traced(chance: random.Random) -> Iterator[Record]:
    """Log lines of about 90 bytes with four headers, three of them the same in all records."""
    while True:
        level = chance.choice(("INFO", "INFO", "INFO", "WARN", "DEBUG"))
        line = (
            f"{level} [{chance.choice(_WORDS)}-{chance.randrange(16)}] {chance.choice(_WORDS)} "
            f"{chance.randrange(1_000_000)} took {chance.randrange(2000)} ms for {chance.choice(_NAMES)}"
        )
        headers = [
            ("content-type", b"text/plain"),
            ("source", b"shop-eu-west-1"),
            ("schema", b"log-line-v2"),
            ("traceparent", f"00-{chance.getrandbits(128):032x}-{chance.getrandbits(64):016x}-01".encode()),
        ]
        yield None, line.encode(), headers


def documents(chance: random.Random) -> Iterator[Record]:
    """JSON of about 2 KiB, a tenth of it as good as random, keyed by a UUID."""
    while True:
        body = {
            "id": f"{chance.getrandbits(128):032x}",
            "owner": chance.choice(_NAMES),
            "signature": f"{chance.getrandbits(800):0200x}",
            "text": " ".join(chance.choice(_WORDS) for _ in range(150)),
            "items": [
                {"sku": f"{chance.getrandbits(40):010x}", "name": chance.choice(_WORDS), "count": n}
                for n in range(chance.randrange(2, 12))
            ],
        }
        yield f"{chance.getrandbits(128):032x}".encode(), json.dumps(body).encode(), []


SHAPES: dict[str, Shape] = {one.__name__: one for one in (events, sensors, traced, documents)}


def batches(name: str, total: int, batch_bytes: int) -> bytes:
    """Uncompressed magic 2 batches of the shape, of about `batch_bytes` of content each, `total` together."""
    chance = random.Random(name)
    records = SHAPES[name](chance)
    builder, written, offset = RecordsBuilder(), bytearray(), 0
    timestamp = TIME
    while len(written) < total:
        size = 0
        while size < batch_bytes:
            key, value, headers = next(records)
            builder.append(offset, timestamp, key, value, headers)
            size += len(key or b"") + len(value) + sum(len(one) + len(other) for one, other in headers) + 10
            offset += 1
            timestamp += chance.randrange(3)
        written += builder.build()
    return bytes(written)
