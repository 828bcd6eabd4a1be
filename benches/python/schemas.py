"""Keys and values to typed columns, against what else reads such payloads into Arrow, on one core.

Our side takes framed values and checks every row; the others are given bare payloads of one schema, and stop
at the first bad one.
"""

import base64
import io
import json
import random
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.json
from bench import Bench
from figures import figure
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from magicbyte.schema.decoding import ColumnDecoder
from magicbyte.schema.registry import Schema, StoredRegistry
from processes import pin, unpin
from ratios import Comparison, in_turn

PART = "Schemas"
ROWS = 100_000
IDS = 30
DAMAGED = 100

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "price", "type": "double"},
        {"name": "paid", "type": "boolean"},
        {"name": "note", "type": ["null", "string"]},
    ],
}
JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "customer": {"type": "string"},
        "price": {"type": "number"},
        "paid": {"type": "boolean"},
        "note": {"type": ["null", "string"]},
    },
}
PROTO = """
    name: "bench.proto" syntax: "proto3"
    message_type {
      name: "Flat"
      field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }
      field { name: "customer" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
      field { name: "price" number: 3 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
      field { name: "paid" number: 4 type: TYPE_BOOL label: LABEL_OPTIONAL }
      field { name: "note" number: 5 type: TYPE_STRING label: LABEL_OPTIONAL }
    }
    message_type {
      name: "Nested"
      field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }
      field { name: "first" number: 2 type: TYPE_MESSAGE type_name: ".Line" label: LABEL_OPTIONAL }
      field { name: "lines" number: 3 type: TYPE_MESSAGE type_name: ".Line" label: LABEL_REPEATED }
    }
    message_type {
      name: "Line"
      field { name: "sku" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
      field { name: "prices" number: 2 type: TYPE_DOUBLE label: LABEL_REPEATED }
    }
"""
Table = pa.RecordBatch | pa.Table


def measure(bench: Bench) -> None:
    pin()
    rows = orders()
    parts = (("Avro", avro), ("Avro's histories", histories), ("Protobuf", protobuf), ("JSON", json_values))
    for what, compare in parts:
        with bench.guarded(f"{PART}, {what}"):
            compare(bench, rows)
    unpin()


def orders() -> list[dict[str, Any]]:
    """Rows of 36 bytes as Avro."""
    random_ = random.Random(1)
    return [
        {
            "id": random_.randrange(1 << 40),
            "customer": f"customer-{random_.randrange(10_000)}",
            "price": random_.random() * 100,
            "paid": random_.random() < 0.5,
            "note": random_.choice([None, "to the door"]),
        }
        for _ in range(ROWS)
    ]


def avro(bench: Bench, rows: list[dict[str, Any]]) -> None:
    parsed = fastavro.parse_schema(AVRO)
    payloads = []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        payloads.append(out.getvalue())
    # One schema by many ids.
    versions = {1: json.dumps(AVRO)} | {
        number: json.dumps(AVRO | {"doc": f"version {number}"}) for number in range(2, IDS + 1)
    }
    one, mixed = framed(payloads, [1]), framed(payloads, list(versions))
    bad = [
        payload[:-1] + b"\xff" * 11 if number % DAMAGED == 0 else payload
        for number, payload in enumerate(payloads)
    ]
    expected = pa.array(rows, ours("avro", versions)(one).column("value").type)

    def theirs() -> Table:
        return pa.Table.from_pylist([fastavro.schemaless_reader(io.BytesIO(one), parsed) for one in payloads])

    ways = {
        "one id": checked(partial(ours("avro", versions), one), expected),
        "30 ids": checked(partial(ours("avro", versions), mixed), expected),
        "damaged": partial(ours("avro", versions), framed(bad, [1])),
        "fastavro": theirs,
    }
    rates = in_turn({name: rate(way) for name, way in ways.items()}, bench.turns)
    add(bench, "Avro", "5 fields", "fastavro into pyarrow", rates["one id"], rates["fastavro"])
    add(bench, "Avro", "30 ids", "one id", rates["30 ids"], rates["one id"])
    add(bench, "Avro", "every 100th damaged", "no damage", rates["damaged"], rates["one id"])


def histories(bench: Bench, rows: list[dict[str, Any]]) -> None:
    """Readers that are newer than the writer, beside the writer's own schema."""
    fields = AVRO["fields"]
    assert isinstance(fields, list)

    def record(*fields: Any) -> dict[str, Any]:
        return {**AVRO, "fields": list(fields)}

    def written(schema: dict[str, Any], values: list[dict[str, Any]]) -> list[bytes]:
        parsed, payloads = fastavro.parse_schema(schema), []
        for value in values:
            out = io.BytesIO()
            fastavro.schemaless_writer(out, parsed, value)
            payloads.append(out.getvalue())
        return payloads

    added = [{"name": f"added{n}", "type": "int", "default": n} for n in range(3)]
    renamed = {**AVRO, "namespace": "shop", "aliases": ["Order"]}
    renamed["fields"] = [{"name": "number", "type": "long", "aliases": ["id"]}, *fields[1:]]
    union = record(*fields[:2], {"name": "price", "type": ["null", "double", "string"]}, *fields[3:])
    newer = [{"name": f"v{n}", "type": ["null", "int"], "default": None} for n in range(IDS)]
    versions = {n + 1: json.dumps(record(*fields, *newer[: IDS - n])) for n in range(IDS)}
    payloads = [written(json.loads(text), rows[:: IDS // 2]) for text in versions.values()]
    some = len(payloads[0])
    mixed = framed([payloads[row % IDS][row % some] for row in range(ROWS)], list(versions))
    latest = framed([payloads[0][row % some] for row in range(ROWS)], [1])
    one = framed(written(AVRO, rows), [7])
    readers = {
        "plain": ({1: json.dumps(AVRO), 7: json.dumps(AVRO)}, one),
        "renamed fields": ({1: json.dumps(renamed), 7: json.dumps(AVRO)}, one),
        "defaults": ({1: json.dumps(record(*fields, *added)), 7: json.dumps(AVRO)}, one),
        "unions": ({1: json.dumps(union), 7: json.dumps(union)}, framed(written(union, rows), [7])),
        "latest": (versions, latest),
        "30 versions": (versions, mixed),
    }
    ways = {}
    for name, (texts, batch) in readers.items():
        decode = ours("avro", texts)
        if decode(batch).column("_error").null_count < ROWS:
            raise RuntimeError(f"{name}: rows cannot be read")
        ways[name] = rate(partial(decode, batch))
    rates = in_turn(ways, bench.turns)
    for name in ("renamed fields", "defaults", "unions"):
        add(bench, "Avro", name, "as it was written", rates[name], rates["plain"])
    add(bench, "Avro", "30 versions", "the latest version", rates["30 versions"], rates["latest"])


def protobuf(bench: Bench, rows: list[dict[str, Any]]) -> None:
    import ptars

    file = text_format.Parse(PROTO, descriptor_pb2.FileDescriptorProto())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    classes = message_factory.GetMessageClassesForFiles(["bench.proto"], pool)
    text = base64.b64encode(file.SerializeToString()).decode()

    def nested(row: dict[str, Any]) -> dict[str, Any]:
        line = {"sku": row["customer"], "prices": [row["price"]] * 3}
        return {"id": row["id"], "first": line, "lines": [line, line]}

    flat = [{**row, "note": row["note"] or ""} for row in rows]
    for index, name, values in ((0, "Flat", flat), (1, "Nested", [nested(row) for row in rows])):
        payloads = [classes[name](**value).SerializeToString() for value in values]
        prefix = b"\0" if index == 0 else bytes([2, 2 * index])
        batch = framed(payloads, [1], prefix)
        decode = ours("protobuf", {1: text}, messages=[name])
        expected = pa.array(values, decode(batch).column("value").type)
        handler = ptars.HandlerPool([classes[name].DESCRIPTOR.file]).get_for_message(classes[name].DESCRIPTOR)
        bare = pa.array(payloads, pa.binary())
        ways = {
            "ours": checked(partial(decode, batch), expected),
            "ptars": partial(handler.array_to_record_batch, bare),
        }
        rates = in_turn({way: rate(run) for way, run in ways.items()}, bench.turns)
        on = "5 fields" if name == "Flat" else "nested, repeated"
        add(bench, "Protobuf", on, "ptars", rates["ours"], rates["ptars"])


def json_values(bench: Bench, rows: list[dict[str, Any]]) -> None:
    import orjson

    payloads = [json.dumps(row).encode() for row in rows]
    batch = framed(payloads, [1])
    decode = ours("json", {1: json.dumps(JSON_SCHEMA)})
    data_type = decode(batch).column("value").type
    options = pyarrow.json.ParseOptions(explicit_schema=pa.schema(list(data_type)))

    def arrow() -> Table:
        lines = io.BytesIO(b"\n".join(payloads))
        return pyarrow.json.read_json(lines, pyarrow.json.ReadOptions(use_threads=False), options)

    def loop() -> Table:
        return pa.Table.from_pylist([orjson.loads(one) for one in payloads])

    ways = {
        "ours": checked(partial(decode, batch), pa.array(rows, data_type)),
        "pyarrow.json": arrow,
        "orjson": loop,
    }
    rates = in_turn({name: rate(way) for name, way in ways.items()}, bench.turns)
    add(bench, "JSON", "5 fields", "pyarrow.json", rates["ours"], rates["pyarrow.json"])
    add(bench, "JSON", "5 fields", "orjson into pyarrow", rates["ours"], rates["orjson"])


def framed(payloads: list[bytes], ids: list[int], prefix: bytes = b"") -> pa.RecordBatch:
    """Values whose ids take turns."""
    heads = [b"\0" + struct.pack(">I", one) + prefix for one in ids]
    values = [heads[number % len(heads)] + payload for number, payload in enumerate(payloads)]
    return pa.record_batch({"value": pa.array(values, pa.binary())})


def ours(
    schema_format: Any, texts: dict[int, str], messages: list[str] | None = None
) -> Callable[[pa.RecordBatch], Table]:
    registry = StoredRegistry()
    schemas = {number: Schema(schema_format.upper(), text) for number, text in texts.items()}
    for number, schema in schemas.items():
        registry.put_schema(number, schema)
    return ColumnDecoder(registry, schemas[1], schema_format, messages=messages or ()).decode


def checked(decode: Callable[[], Table], expected: pa.Array) -> Callable[[], Table]:
    """The same, once it has decoded every row right."""
    if not decode().column("value").equals(expected):
        raise RuntimeError("decoded to other values")
    return decode


def rate(decode: Callable[[], Table]) -> Callable[[], float]:
    """Rows a second of CPU time; the first call warms up."""
    decode()

    def measured() -> float:
        start = time.process_time()
        rows = 0
        # Long enough for the clock.
        while (took := time.process_time() - start) < 0.2:
            rows += decode().num_rows
        return rows / took

    return measured


def add(bench: Bench, work: str, on: str, peer: str, mine: list[float], theirs: list[float]) -> None:
    bench.add(figure(PART, work, on, peer, Comparison(mine, theirs)))
