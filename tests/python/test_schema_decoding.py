"""Avro payloads to typed columns: bytes of confluent-kafka's serializers, read by ours and by fastavro."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import struct
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from conftest import Cli
from fastavro.utils import generate_many
from magicbyte import RecordsBuilder, commands
from magicbyte.errors import RefusedError
from magicbyte.options.typed import TypedColumns
from magicbyte.schema import decode
from magicbyte.schema.decoding import ColumnDecoder, InvalidSchemaError, latest_of_topic
from magicbyte.schema.registry import Reference, Schema, StoredRegistry, SubjectVersion
from magicbyte.typed_stream import typed_pieces

DATA = Path(__file__).parents[1] / "data" / "kafka"


def record(*fields: dict[str, Any], name: str = "shop.Order") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, type: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


def avro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def framed(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + struct.pack(">I", schema_id) + payload


def decoded(schema: Any, *payloads: bytes | None) -> pa.StructArray:
    values = [None if payload is None else framed(7, payload) for payload in payloads]
    return decode(values, {7: json.dumps(schema)})


VERSIONS = [
    record(field("id", "int"), field("name", "string"), field("gone", ["null", "string"])),
    record(field("id", "int"), field("name", "string")),
    record(field("id", "long"), field("name", "string"), field("price", "float", default=1.5)),
    record(
        field("name", ["null", "string"], default=None),
        field("id", "long"),
        field("cost", "double", aliases=["price"], default=2.5),
    ),
    record(
        field("id", "long"),
        field("name", ["null", "string"], default=None),
        field("cost", "double", aliases=["price"], default=2.5),
        field("tags", {"type": "array", "items": "string"}, default=[]),
    ),
]


def test_confluent_payloads_of_five_versions_are_one_column() -> None:
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    context = SerializationContext("orders", MessageField.VALUE)
    rows = [
        {"id": 1, "name": "a", "gone": "x"},
        {"id": -2, "name": "b"},
        {"id": 2**40, "name": "ü", "price": 0.5},
        {"id": 4, "name": None, "cost": 4.25},
        {"id": 5, "name": "e", "cost": 5.0, "tags": ["p", "q"]},
    ]
    values: list[bytes | None] = []
    for _ in range(50):
        for schema, row in zip(VERSIONS, rows, strict=True):
            values.append(AvroSerializer(client, json.dumps(schema))(row, context))
    values[7] = None
    values[11] = values[11][:-1] if values[11] else None
    registry = StoredRegistry()
    texts = {}
    for version in range(1, len(VERSIONS) + 1):
        one = client.get_version("orders-value", version)
        texts[one.schema_id] = one.schema.schema_str
        schema = Schema("AVRO", one.schema.schema_str)
        registry.put(SubjectVersion("orders-value", version, one.schema_id, schema))

    result = decode(values, registry)

    assert [one.name for one in result.type.field("value").type] == ["id", "name", "cost", "tags"]
    for index, (value, ours) in enumerate(zip(values, result.to_pylist(), strict=True)):
        if value is None:
            assert ours == {"value": None, "_schema_id": None, "_error": None, "invalidValue": None}
            continue
        (schema_id,) = struct.unpack(">I", value[1:5])
        assert ours["_schema_id"] == schema_id
        if index == 11:
            assert ours["value"] is None
            assert ours["invalidValue"] == value
            assert ours["_error"] == "name: a string of 1 bytes: the payload has 0 more (byte 6)"
            continue
        theirs = fastavro.schemaless_reader(
            io.BytesIO(value[5:]), json.loads(texts[schema_id]), json.loads(texts[max(texts)])
        )
        assert (ours["value"], ours["_error"], ours["invalidValue"]) == (theirs, None, None)


def plain(value: Any) -> Any:
    """A value of fastavro's as pyarrow has it."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


EMPTY = {"__dummy_field_in_empty_struct": None}
"""A record without fields."""

SCHEMAS: dict[str, Any] = {
    "int": "int",
    "nullable": ["null", "long"],
    "null last": ["double", "null"],
    "of one": ["string"],
    "bytes": "bytes",
    "boolean": "boolean",
    "float": "float",
    "array": {"type": "array", "items": ["null", "string"]},
    "nested": {"type": "array", "items": {"type": "array", "items": "int"}},
    "enum": {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]},
    "fixed": {"type": "fixed", "name": "F", "size": 5},
    "no fields": record(),
    "null": "null",
    "nulls": {"type": "array", "items": "null"},
    "a null": record(field("n", "null"), field("r", record(field("m", "null"), name="R"))),
    "no bytes": {"type": "fixed", "name": "F", "size": 0},
    "of no bytes": {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}},
    "record": record(
        field("a", "long"),
        field(
            "b",
            ["null", record(field("c", "string"), field("d", {"type": "array", "items": "int"}), name="I")],
        ),
        field("again", "I"),
        field("e", {"type": "enum", "name": "shop.E", "symbols": ["A", "B"]}),
    ),
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_values_are_those_of_fastavro(schema: Any) -> None:
    parsed = fastavro.parse_schema(schema)
    payloads = [avro(schema, value) for value in generate_many(parsed, 50)]
    result = decoded(schema, *payloads)
    assert result.field("_error").null_count == len(payloads)
    expected = [plain(fastavro.schemaless_reader(io.BytesIO(payload), parsed)) for payload in payloads]
    assert result.field("value").to_pylist() == [value if value != {} else EMPTY for value in expected]


def logical(type: str, meaning: str, **more: Any) -> dict[str, Any]:
    return {"type": type, "logicalType": meaning, **more}


MICROS = pa.timestamp("us")
UTC = pa.timestamp("us", tz="UTC")
TYPES: list[tuple[Any, pa.DataType]] = [
    ("int", pa.int32()),
    ("long", pa.int64()),
    ("float", pa.float32()),
    ("double", pa.float64()),
    ("bytes", pa.binary()),
    ("string", pa.string()),
    ("null", pa.null()),
    ({"type": "fixed", "name": "F", "size": 2}, pa.binary()),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.string()),
    ({"type": "map", "values": "int"}, pa.map_(pa.string(), pa.int32())),
    ({"type": "array", "items": "int"}, pa.list_(pa.int32())),
    (logical("int", "date"), pa.date32()),
    (logical("int", "time-millis"), pa.int32()),
    (logical("long", "time-micros"), pa.int64()),
    (logical("long", "timestamp-millis"), UTC),
    (logical("long", "timestamp-micros"), UTC),
    (logical("long", "timestamp-nanos"), pa.int64()),
    (logical("long", "local-timestamp-millis"), MICROS),
    (logical("long", "local-timestamp-micros"), MICROS),
    (logical("string", "uuid"), pa.string()),
    (logical("bytes", "decimal", precision=10, scale=2), pa.decimal128(10, 2)),
    (logical("bytes", "decimal", precision=50, scale=2), pa.string()),
    (logical("fixed", "decimal", name="D", size=4, precision=9), pa.decimal128(9, 0)),
    (logical("bytes", "decimal", precision=77), pa.string()),
    (logical("long", "of the future"), pa.int64()),
    (["int", "long"], pa.int64()),
    (["null", "float", "double"], pa.float64()),
    (["null", "int", "string"], pa.struct([("member0", pa.int32()), ("member1", pa.string())])),
    (["null", "string"], pa.string()),
    (["null"], pa.null()),
]


@pytest.mark.parametrize(("schema", "expected"), TYPES)
def test_types_are_those_of_sparks_from_avro(schema: Any, expected: pa.DataType) -> None:
    reader = Schema("AVRO", json.dumps(record(field("it", schema))))
    column = ColumnDecoder(StoredRegistry(), reader).schema.field("value").type
    assert column == pa.struct([("it", expected)])


def test_unions_are_structs() -> None:
    events = [record(field("a", "int"), name="A"), record(field("b", "string"), name="B")]
    payloads = [b"\0\x02", b"\x02\x02x", b"\0\x04"]
    assert decoded(events, *payloads).field("value").to_pylist() == [
        {"member0": {"a": 1}, "member1": None},
        {"member0": None, "member1": {"b": "x"}},
        {"member0": {"a": 2}, "member1": None},
    ]
    numbers = decoded(["null", "int", "long"], b"\x02\x01", b"\0", b"\x04\x80\x80\x80\x80\x40")
    assert numbers.field("value").to_pylist() == [-1, None, 2**33]
    of_null = decoded(["null", "int", "string"], b"\0", b"\x02\x02")
    assert of_null.field("value").to_pylist() == [None, {"member0": 1, "member1": None}]


def test_decimals_and_times() -> None:
    decimal = logical("bytes", "decimal", precision=6, scale=2)
    result = decoded(decimal, b"\x04\xff\x9c", b"\x00", b"\x08\x7f\xff\xff\xff")
    assert [str(one) for one in result.field("value").to_pylist()] == ["-1.00", "None", "None"]
    # Java has no number of no byte, either.
    assert "a decimal without bytes" in result.field("_error")[1].as_py()
    assert "a decimal with more than 6 digits (byte 5)" in result.field("_error")[2].as_py()
    late = decoded(logical("long", "timestamp-millis"), avro("long", 2**62), avro("long", 1))
    assert late.field("_error")[0].as_py().endswith("has no number of microseconds (byte 5)")
    assert late.field("value").cast(pa.int64()).to_pylist() == [None, 1000]


NODE = record(field("value", "int"), field("next", ["null", "Node"]), name="Node")


def test_a_recursive_type_is_text() -> None:
    result = decoded(NODE, b"\x02\x02\x04\0", b"\x02" * 10_000)
    assert result.field("value").to_pylist() == ['{"value":1,"next":{"value":2,"next":null}}', None]
    assert "nested deeper than 100" in result.field("_error")[1].as_py()


def test_long_decimals_are_text() -> None:
    long = logical("bytes", "decimal", precision=100, scale=1)
    assert decoded(long, b"\x02\x85").field("value").to_pylist() == ["-12.3"]


def test_as_text() -> None:
    schema = record(
        field("t", logical("long", "timestamp-millis")), field("b", "bytes"), field("d", "double")
    )
    value = framed(7, b"\x02\x04\xff\x22" + struct.pack("<d", float("nan")))
    result = decode([value], {7: json.dumps(schema)}, as_text=True)
    text = result.field("value")[0].as_py()
    assert json.loads(text) == {"t": "1970-01-01T00:00:00.001000Z", "b": '\xff"', "d": "NaN"}


@pytest.mark.parametrize("type_", ["float", "double"])
@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("nan", '"NaN"'),
        ("inf", '"Infinity"'),
        ("-inf", '"-Infinity"'),
        ("-0.0", "-0.0"),
        ("1.5", "1.5"),
        ("1e30", "1e30"),
    ],
)
def test_numbers_as_java_writes_them(type_: str, number: str, text: str) -> None:
    value = framed(7, struct.pack("<f" if type_ == "float" else "<d", float(number)))
    assert decode([value], {7: f'"{type_}"'}, as_text=True).field("value").to_pylist() == [text]
    union = json.dumps({"type": "array", "items": ["null", type_]})
    value = framed(7, b"\2\2" + value[5:] + b"\0")
    assert decode([value], {7: union}, as_text=True).field("value").to_pylist() == [f"[{text}]"]


HOSTILE: list[tuple[Any, bytes, str]] = [
    ({"type": "array", "items": "null"}, b"\x80\x80\x80\x80\x20", "the limit for a payload of 5 (byte 10)"),
    ({"type": "array", "items": record()}, b"\xff" * 9 + b"\x01", "the payload ends"),
    ({"type": "map", "values": "null"}, b"\x80\x80\x80\x80\x20", "payload ends"),
    ({"type": "array", "items": "int"}, b"\x01", "payload ends"),
    ("string", b"\x04\xc3\x28", "a string is not UTF-8 (byte 5)"),
    ("string", b"\xfe\xff\xff\xff\x0f\x61", "the payload has 1 more (byte 5)"),
    ("bytes", b"\x01", "bytes of -1 bytes"),
    ("long", b"\xff" * 11, "more than 64 bits"),
    ("int", b"\xff\xff\xff\xff\x7f", "expected an int of 32 bits"),
    ("boolean", b"\x02", "a boolean of 2"),
    (["null", "int"], b"\x04", "the branch of a union is 2: there are 2"),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", "the symbol of an enum is 1: there are 1"),
    ("double", b"\0" * 7, "expected 8 bytes of a double, found 7"),
    ("int", b"\x02\x02", "1 bytes after the end of the value (byte 6)"),
    ("int", b"", "payload ends"),
]


@pytest.mark.parametrize(("schema", "payload", "reason"), HOSTILE)
def test_a_bad_row_costs_only_itself(schema: Any, payload: bytes, reason: str) -> None:
    good = avro(schema, next(generate_many(fastavro.parse_schema(schema), 1)))
    result = decoded(schema, good, payload, good)
    errors = result.field("_error").to_pylist()
    assert (errors[0], errors[2]) == (None, None)
    assert reason in errors[1]
    assert result.field("invalidValue").to_pylist() == [None, framed(7, payload), None]
    assert result.field("value")[0] == result.field("value")[2]


def test_what_the_reader_does_not_know_is_an_error_of_its_row() -> None:
    old = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    new = {"type": "enum", "name": "E", "symbols": ["A"]}
    values = [framed(1, b"\0"), framed(1, b"\x02")] * 100
    result = decode(values, {1: json.dumps(old)}, reader_schema=json.dumps(new))
    assert result.field("value").to_pylist() == ["A", None] * 100
    assert result.field("_error").null_count == 100


def test_ids_that_have_no_schema() -> None:
    registry = StoredRegistry()
    registry.put_schema(1, Schema("AVRO", '"int"'))
    registry.put_schema(2, Schema("PROTOBUF", 'syntax = "proto3";'))
    registry.put_schema(3, Schema("AVRO", "{"))
    registry.put_schema(4, Schema("AVRO", '"string"'))
    lost = Schema("AVRO", '"x.Lost"', (Reference("x.Lost", "lost", 1),))
    registry.put_schema(5, lost)
    values = [framed(number, b"\x02") for number in range(1, 7)]
    result = decode(values, registry, reader_schema='"int"')
    assert result.field("value").to_pylist() == [1, None, None, None, None, None]
    errors = result.field("_error").to_pylist()
    for error, expected in zip(
        errors[1:],
        (
            "PROTOBUF, expected AVRO",
            "not JSON",
            "cannot be read as the reader's",
            "lost",
            "no schema has the id 6",
        ),
        strict=True,
    ):
        assert expected in error
    assert result.field("_schema_id").to_pylist() == [1, 2, 3, 4, 5, 6]


NOT_SCHEMAS = [
    '{"type": "record"}',
    "[",
    '["int", "int"]',
    '"Unknown"',
    '{"type": "array"}',
    "[[]]",
    "{}",
    "7",
]


@pytest.mark.parametrize(
    "schema", [*NOT_SCHEMAS, "[" * 200, json.dumps(record(field("a", "int"), field("a", "int")))]
)
def test_a_readers_schema_that_is_none(schema: str) -> None:
    with pytest.raises(InvalidSchemaError, match="the reader's schema: "):
        decode([], {}, reader_schema=schema)


def test_a_schema_that_doubles_with_each_type_is_refused() -> None:
    levels = [record(field("a", "int"), name="T0")]
    for number in range(1, 40):
        levels.append(record(field("a", f"T{number - 1}"), field("b", f"T{number - 1}"), name=f"T{number}"))
    registry = StoredRegistry()
    references = []
    for number, level in enumerate(levels):
        schema = Schema("AVRO", json.dumps(level), tuple(references[-1:]))
        registry.put(SubjectVersion(f"t{number}", 1, number + 1, schema))
        references.append(Reference(f"T{number}", f"t{number}", 1))
    with pytest.raises(InvalidSchemaError, match="more than 10000 types"):
        ColumnDecoder(registry, registry.by_id(40))


def test_references_are_inlined() -> None:
    registry = StoredRegistry()
    address = record(field("city", "string"), name="other.Addr")
    registry.put(SubjectVersion("addr", 1, 1, Schema("AVRO", json.dumps(address))))
    person = record(field("home", "other.Addr"), field("work", ["null", "other.Addr"]), name="x.Person")
    using = Schema("AVRO", json.dumps(person), (Reference("other.Addr", "addr", 1),))
    registry.put(SubjectVersion("person-value", 1, 2, using))
    result = decode([framed(2, b"\x02A\x02\x02B"), framed(2, b"\x02A\0")], registry)
    assert result.field("value").to_pylist() == [
        {"home": {"city": "A"}, "work": {"city": "B"}},
        {"home": {"city": "A"}, "work": None},
    ]


def test_headers_and_guids() -> None:
    registry = StoredRegistry()
    schema = Schema("AVRO", '"int"').with_guid()
    registry.put_schema(9, schema)
    guid = b"\x01" + bytes.fromhex((schema.guid or "").replace("-", ""))
    headers = [
        [("__value_schema_id", framed(9, b""))],
        [("__value_schema_id", guid)],
        [("__value_schema_id", b"?")],
        [],
    ]
    batch = pa.record_batch(
        {
            "value": pa.array([b"\x02", b"\x04", b"\x06", guid + b"\x08"]),
            "headers": pa.array(headers, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        }
    )
    decoder = pickle.loads(pickle.dumps(ColumnDecoder(registry, schema)))
    result = decoder.decode(batch).to_pydict()
    assert result["value"] == [1, 2, None, 4]
    assert result["_schema_id"] == [9, None, None, None]
    assert result["_error"] == [None, None, "the header __value_schema_id is neither an id nor a GUID", None]
    eight = decode([b"\0" + struct.pack(">q", 9) + b"\x02"], registry, framing="apicurio")
    assert eight.field("value").to_pylist() == [1]


@pytest.mark.parametrize("make", [pa.large_binary, pa.binary_view, pa.binary])
def test_layouts(make: Callable[[], pa.DataType]) -> None:
    values = pa.array([framed(7, b"\x06abc"), None], make())
    assert decode(values, {7: '"string"'}).field("value").to_pylist() == ["abc", None]
    chunked = pa.chunked_array([values, values])
    assert decode(chunked, {7: '"string"'}).field("value").to_pylist() == ["abc", None] * 2
    assert len(decode([], {7: '"string"'})) == 0


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    shutil.copytree(DATA / "sr_avro", tmp_path / "logs" / "orders-0")
    shutil.copytree(DATA / "schemas_topic", tmp_path / "logs" / "_schemas-0")
    return tmp_path / "logs"


def test_ingest_writes_typed_tables(logs: Path, tmp_path: Path) -> None:
    typed = TypedColumns(schema_registry=str(logs), key_format="avro", value_format="avro")
    report = commands.ingest(logs / "orders-0", tmp_path / "out", typed=typed)
    table = pq.read_table(tmp_path / "out" / "records").sort_by("offset")
    assert report["balanced"]
    total = report["total"]
    # The keys of this topic are text without framing.
    assert (total["rows"], total["invalid_keys"], total["invalid_values"]) == (120, 120, 0)
    assert table.column("_error").null_count == 120
    assert table.column("invalidKey").null_count == 0
    expected = [json.loads(line) for line in (DATA / "sr_avro" / "expected.jsonl").read_text().splitlines()]
    rows = table.select(["value", "_schema_id", "invalidKey"]).to_pylist()
    assert len(rows) == len(expected)
    assert {row["_schema_id"] for row in rows} == {None, 1, 4}
    assert sum(row["value"] is None for row in rows) == sum(row["_schema_id"] is None for row in rows) == 2
    assert rows[2]["value"] == {"id": 1999506, "name": "näme-2", "price": 2.5, "tags": ["a2", "b"]}


def test_a_partition_whose_schema_changed_five_times_is_one_table(tmp_path: Path) -> None:
    fields = [field("id", "int")]
    builder = RecordsBuilder()
    (tmp_path / "schemas").mkdir()
    versions = [fields, [field("id", "long")]]
    for number in range(4):
        versions.append([*versions[-1], field(f"f{number}", ["null", "string"], default=None)])
    for number, version in enumerate(versions):
        schema = record(*version)
        row = {one["name"]: f"v{number}" for one in version} | {"id": number}
        builder.append(number, 0, None, framed(number + 1, avro(schema, row)))
        for name in (f"{number + 1}", "orders-value"):
            (tmp_path / "schemas" / f"{name}.avsc").write_text(json.dumps(schema))
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / f"{0:020}.log").write_bytes(builder.build())
    typed = TypedColumns(schema_registry=str(tmp_path / "schemas"), value_format="avro")
    report = commands.ingest(partition, tmp_path / "out", typed=typed)
    assert (report["balanced"], report["total"]["rows"], report["total"]["invalid_values"]) == (True, 6, 0)
    (file,) = (tmp_path / "out" / "records").glob("*.parquet")
    table = pq.read_table(file).sort_by("offset")
    assert [one.name for one in table.schema.field("value").type] == ["id", "f0", "f1", "f2", "f3"]
    assert table.column("_schema_id").to_pylist() == [1, 2, 3, 4, 5, 6]
    rows = table.column("value").to_pylist()
    assert [row["id"] for row in rows] == list(range(6))
    assert [sum(one is not None for one in row.values()) for row in rows] == [1, 1, 2, 3, 4, 5]


def test_ingest_without_a_schema_is_refused(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="no subject has the name _schemas-value"):
        commands.ingest(
            logs, tmp_path / "out", typed=TypedColumns(schema_registry=str(logs), value_format="avro")
        )
    assert not (tmp_path / "out").exists()


def test_ids_that_are_not_known_do_not_pile_up() -> None:
    class Counting(StoredRegistry):
        asked = 0

        def by_id(self, schema_id: int, context: str = ".") -> Schema:
            self.asked += 1
            return super().by_id(schema_id, context)

    registry = Counting()
    registry.put_schema(2**20, Schema("AVRO", '"int"'))
    decoder = ColumnDecoder(registry, registry.by_id(2**20))

    def asked(count: int) -> int:
        values = [framed(2**20 + number, b"\x02") for number in range(count)]
        before = registry.asked
        result = decoder.decode(pa.record_batch({"value": pa.array(values)}))
        assert result.column("value").null_count == count - 1
        return registry.asked - before

    assert (asked(1000), asked(1000)) == (1000, 0)
    # The one that is known is remembered.
    assert (asked(70_000), asked(70_000)) == (69_000, 69_999)


def test_a_log_has_typed_columns(logs: Path) -> None:
    from magicbyte import PartitionLog
    from magicbyte.jobs.schemas import open_registry

    _, registry = open_registry([str(logs)])
    reader = latest_of_topic(registry, "orders")
    decoder = ColumnDecoder(registry, reader)
    log = PartitionLog(logs / "orders-0")
    table = pa.table(log.to_arrow(["offset", "value"], value=decoder))
    assert table.column_names == ["offset", "value", "_schema_id", "_error", "invalidValue"]
    assert table.column("value")[2].as_py() == {
        "id": 1999506,
        "name": "n\u00e4me-2",
        "price": 2.5,
        "tags": ["a2", "b"],
    }
    assert table.num_rows - table.column("value").null_count == 118
    keys = ColumnDecoder(registry, reader, is_key=True)
    both = pa.table(log.to_arrow(key=keys, value=decoder, where='"offset" >= 100', threads=2))
    assert both.column("key").null_count == both.num_rows == 20
    assert both.column_names[-6:] == [
        "_key_schema_id",
        "_key_error",
        "invalidKey",
        "_schema_id",
        "_error",
        "invalidValue",
    ]
    with pytest.raises(ValueError, match="value: a decoder of key"):
        log.to_arrow(value=keys)
    with pytest.raises(ValueError, match="for columns"):
        log.to_arrow(["offset"], value=decoder)


def test_dump_and_records_print_json(logs: Path, cli: Cli) -> None:
    given = ["--value-format", "avro", "--schema-registry", logs, "--max-records", "3"]
    rows = [json.loads(line) for line in cli("records", logs / "orders-0", *given).splitlines()]
    assert rows[0]["value"] == {"id": -500, "name": "n\u00e4me-0", "price": None}
    dumped = cli("dump", logs / "orders-0", *given).splitlines()
    assert dumped[3].endswith('payload: {"id":-500,"name":"n\u00e4me-0","price":null}')
    # Keys without a schema are reported, and printed as they are.
    keys = ["--key-format", "avro", "--schema-registry", logs, "--max-records", "1"]
    for command in ("records", "dump"):
        printed = cli(command, logs / "orders-0", *keys, code=1)
        assert "order-0" in printed
        assert "record at offset 0: the key: not framed" in cli.error
    cli("records", logs / "orders-0", "--value-format", "avro", code=2)
    assert "needs --schema-registry" in cli.error
    cli("dump", logs / "orders-0", "--value-format", "json", code=2)
    assert "needs --schema-registry" in cli.error
    cli("records", logs / "orders-0", *keys, "--key", "a", code=2)
    assert "--key is not for keys in the format avro" in cli.error


LONGS = record(*(field(f"f{number}", "long", default=0) for number in range(3000)))


def test_a_batch_is_cut_where_its_columns_have_room() -> None:
    registry = StoredRegistry()
    registry.put_schema(1, Schema("AVRO", json.dumps(record())))
    reader = Schema("AVRO", json.dumps(LONGS))
    values = [b"?" if row % 1000 == 500 else framed(1, b"") for row in range(8000)]
    batch = pa.record_batch({"offset": pa.array(range(8000)), "value": pa.array(values, pa.binary())})
    decoder = ColumnDecoder(registry, reader)
    pieces = list(decoder.replace(batch))
    assert len(pieces) > 2
    assert all(piece.nbytes < 100 << 20 for piece, _ in pieces)
    assert [offset for piece, _ in pieces for offset in piece.column("offset").to_pylist()] == list(
        range(8000)
    )
    assert sum(nameless.unframed for _, nameless in pieces) == 8
    errors = [row for piece, _ in pieces for row in piece.column("_error").to_pylist()]
    assert [row for row, error in enumerate(errors) if error] == list(range(500, 8000, 1000))
    with pytest.raises(ValueError, match="the columns of 8000 rows take more than max_bytes=100000000"):
        decoder.decode(batch, max_bytes=100_000_000)
    assert decoder.decode(batch).num_rows == 8000
    assert decoder.decode(batch.slice(0, 0)).num_rows == 0


def test_two_typed_columns_are_cut_alike() -> None:
    registry = StoredRegistry()
    registry.put_schema(1, Schema("AVRO", json.dumps(record())))
    reader = Schema("AVRO", json.dumps(LONGS))
    value = [framed(1, b"")] * 4000
    unknown = framed(99, b"")
    keys, values = [b"?", *value[1:-1], unknown], [*value[:3000], unknown, *value[3001:-1], b"?"]
    batch = pa.record_batch({"key": keys, "value": values})
    decoders = [ColumnDecoder(registry, reader, is_key=is_key) for is_key in (True, False)]
    pieces = list(typed_pieces(batch, decoders))
    assert len(pieces) > 1
    assert sum(piece.num_rows for piece, _ in pieces) == 4000
    found: list[tuple[int, set[int]]] = []
    for column in (0, 1):
        nameless = [columns[column] for _, columns in pieces]
        starts = [0, *accumulate(piece.num_rows for piece, _ in pieces)]
        absent = {start + row for start, one in zip(starts, nameless, strict=False) for row in one.absent}
        found.append((sum(one.unframed for one in nameless), absent))
    assert found == [(1, {3999}), (1, {3000})]


def test_reasons_of_any_length_are_cut() -> None:
    name = "f" * 100_000
    rows = decoded(record(field(name, "boolean")), b"\x05")
    assert 200 < len(rows.field("_error")[0].as_py()) < 600


@pytest.mark.parametrize(
    "branches",
    [
        ["int", {"type": "long", "logicalType": "timestamp-millis"}],
        [{"type": "int", "logicalType": "date"}, {"type": "long", "logicalType": "local-timestamp-micros"}],
    ],
)
def test_a_union_of_numbers_is_one_column_of_numbers(branches: Any) -> None:
    rows = decoded(record(field("x", branches)), b"\0\x02", b"\x02\x04", b"\x04")
    assert rows.field("value").to_pylist() == [{"x": 1}, {"x": 2}, None]


@pytest.mark.parametrize("writer", ["int", "long"])
@pytest.mark.parametrize(
    ("branches", "expected"),
    [
        (["float", "double"], 16777216.0),
        (["double", "float"], 16777217.0),
        (["null", "float", "double"], 16777216.0),
        (["null", "string", "float"], {"member0": None, "member1": 16777216.0}),
        (["float"], 16777216.0),
    ],
)
def test_a_number_is_of_the_branch_that_java_takes(writer: str, branches: Any, expected: Any) -> None:
    """The first one that it can be promoted to, also where all branches share a column."""
    payload = b"\0\0\0\0\7\x82\x80\x80\x10"
    reader = json.dumps(record(field("x", branches)))
    texts = {7: json.dumps(record(field("x", writer)))}
    (row,) = decode([payload], texts, reader_schema=reader).field("value").to_pylist()
    assert row == {"x": expected}


@pytest.mark.parametrize("name", ["\0", "a\0b"])
def test_names_that_no_column_can_have(name: str) -> None:
    avro = json.dumps(record(field(name, "int")))
    with pytest.raises(InvalidSchemaError, match="no column has"):
        decode([b"\0\0\0\0\7\2"], {7: avro})
    # Of JSON, the object is text.
    inner = {"type": "object", "properties": {name: {"type": "integer"}}}
    schema = {"type": "object", "properties": {"o": inner, "n": {"type": "integer"}}}
    payload = json.dumps({"o": {name: 1}, "n": 2}).encode()
    (row,) = decode([b"\0\0\0\0\7" + payload], {7: json.dumps(schema)}, "json").field("value").to_pylist()
    assert (json.loads(row["o"]), row["n"]) == ({name: 1}, 2)
