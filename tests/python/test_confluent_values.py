"""What confluent-kafka's serializers wrote, from a log that has the registry's topic and nothing else.

Three formats, whose schemas use others; ids before the payload, and GUIDs in a header. Every way to the
values gives those that were written. And what we encode is what its deserializers read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka.schema_registry import Schema as ConfluentSchema
from confluent_kafka.schema_registry import (
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from conftest import Cli
from magicbyte import PartitionLog, RecordsBuilder
from magicbyte.enums import SchemaFormat
from magicbyte.jobs.schemas import open_registry
from magicbyte.schema import ColumnDecoder, decode, encode, latest_of_topic
from magicbyte.schema.registry import Reference, Schema, StoredRegistry
from magicbyte.schema.schemas_topic import apply
from proto_files import classes, file_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS: tuple[SchemaFormat, ...] = ("avro", "protobuf", "json")
ROWS = [{"id": number, "buyer": {"name": f"käufer-{number}"}} for number in range(3)]
BUYER = file_of("""
    name: "buyer.proto" package: "shop" syntax: "proto3"
    message_type {
      name: "Buyer" field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    }
""")
# The message is not the file's first one: its index is written out.
ORDER = file_of("""
    name: "order.proto" package: "shop" syntax: "proto3" dependency: "buyer.proto"
    message_type { name: "Other" }
    message_type {
      name: "Order"
      field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }
      field { name: "buyer" number: 2 type: TYPE_MESSAGE type_name: ".shop.Buyer" label: LABEL_OPTIONAL }
    }
""")
Order = classes(BUYER, ORDER)["shop.Order"]
Serialize = Callable[[dict[str, Any], SerializationContext], bytes]


def avro(client: SchemaRegistryClient, settings: dict[str, Any]) -> Serialize:
    buyer = {"type": "record", "name": "shop.Buyer", "fields": [{"name": "name", "type": "string"}]}
    fields = [{"name": "id", "type": "long"}, {"name": "buyer", "type": "shop.Buyer"}]
    order = {"type": "record", "name": "shop.Order", "fields": fields}
    client.register_schema("buyer-avro", ConfluentSchema(json.dumps(buyer), "AVRO"))
    used = [SchemaReference("shop.Buyer", "buyer-avro", 1)]
    return AvroSerializer(client, ConfluentSchema(json.dumps(order), "AVRO", used), None, settings)


def protobuf(client: SchemaRegistryClient, settings: dict[str, Any]) -> Serialize:
    serialize = ProtobufSerializer(Order, client, {"use.deprecated.format": False, **settings})
    return lambda row, context: serialize(Order(**row), context)


def json_(client: SchemaRegistryClient, settings: dict[str, Any]) -> Serialize:
    buyer = {"title": "Buyer", "type": "object", "properties": {"name": {"type": "string"}}}
    properties = {"id": {"type": "integer"}, "buyer": {"$ref": "buyer.json"}}
    order = {"title": "Order", "type": "object", "properties": properties}
    client.register_schema("buyer-json", ConfluentSchema(json.dumps(buyer), "JSON"))
    used = [SchemaReference("buyer.json", "buyer-json", 1)]
    schema = ConfluentSchema(json.dumps(order), "JSON", used)
    return JSONSerializer(schema, client, lambda row, _: row, settings)


SERIALIZERS = {"avro": avro, "protobuf": protobuf, "json": json_}


def partition(directory: Path, records: list[tuple[bytes | None, bytes | None, list[Any]]]) -> None:
    builder = RecordsBuilder()
    for offset, (key, value, headers) in enumerate(records):
        builder.append(offset, 0, key, value, headers)
    directory.mkdir(parents=True)
    (directory / f"{0:020}.log").write_bytes(builder.build())


def as_topic(client: SchemaRegistryClient) -> tuple[list[tuple[bytes, bytes, list[Any]]], dict[bytes, bytes]]:
    """The records that a registry writes for its schemas; and their GUIDs, by those that the mock made up."""
    records, guids = [], {}
    for subject in client.get_subjects():
        for version in client.get_versions(subject):
            one = client.get_version(subject, version)
            used = [vars_of(used) for used in one.schema.references or ()]
            key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
            value = {
                "subject": subject,
                "version": version,
                "id": one.schema_id,
                "schemaType": one.schema.schema_type,
                "references": used,
                "schema": one.schema.schema_str,
                "deleted": False,
            }
            records.append((json.dumps(key).encode(), json.dumps(value).encode(), []))
            references = tuple(Reference(**reference) for reference in used)
            real = Schema(one.schema.schema_type, one.schema.schema_str, references).with_guid().guid
            assert real is not None
            guids[UUID(one.guid).bytes] = UUID(real).bytes
    return records, guids


def vars_of(reference: SchemaReference) -> dict[str, Any]:
    return {"name": reference.name, "subject": reference.subject, "version": reference.version}


@pytest.fixture(params=["prefix", "header"])
def logs(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    places = {"prefix": prefix_schema_id_serializer, "header": header_schema_id_serializer}
    written = {}
    for name, make in SERIALIZERS.items():
        serialize = make(client, {"schema.id.serializer": places[request.param]})
        written[name] = []
        for row in ROWS:
            context = SerializationContext(f"orders-{name}", MessageField.VALUE, [])
            written[name].append((None, serialize(row, context), context.headers or []))
    records, guids = as_topic(client)
    logs = tmp_path / "logs"
    partition(logs / "_schemas-0", list(records))
    for name, rows in written.items():
        real = [
            (key, value, [(header, named[:1] + guids[named[1:17]] + named[17:]) for header, named in headers])
            for key, value, headers in rows
        ]
        assert all(bool(headers) == (request.param == "header") for _, _, headers in real)
        partition(logs / f"orders-{name}-0", [*real, (None, None, [])])
    return logs


EXPECTED = [*ROWS, None]


def message_of(name: SchemaFormat) -> dict[str, Any]:
    return {"messages": ["shop.Order"]} if name == "protobuf" else {}


@pytest.mark.parametrize("name", FORMATS)
def test_in_arrow(logs: Path, name: SchemaFormat) -> None:
    _, registry = open_registry([str(logs)])
    reader = latest_of_topic(registry, f"orders-{name}")
    decoder = ColumnDecoder(registry, reader, name, **message_of(name))
    log = PartitionLog(logs / f"orders-{name}-0")
    rows = pa.table(log.to_arrow(["offset", "value"], value=decoder))
    assert rows.column("value").to_pylist() == EXPECTED
    assert rows.column("_error").null_count == rows.column("invalidValue").null_count == 4


@pytest.mark.parametrize("name", FORMATS)
def test_ingested_dumped_and_printed(logs: Path, name: SchemaFormat, tmp_path: Path, cli: Cli) -> None:
    given = ["--value-format", name, "--schema-registry", logs]
    message = ["--message", "shop.Order"] if name == "protobuf" else []
    cli("ingest", "--topic", f"orders-{name}", *given, *message, logs, tmp_path / "out")
    assert pq.read_table(tmp_path / "out" / "records").column("value").to_pylist() == EXPECTED
    printed = [row["value"] for row in cli.records(logs / f"orders-{name}-0", *given)]
    dumped = re.findall(r"payload: (.*)", cli("dump", logs / f"orders-{name}-0", *given))
    for values in (printed, [json.loads(text) for text in dumped]):
        # Protobuf's JSON has 64-bit numbers as text, and no defaults.
        found = [row and {**row, "id": int(row.get("id", 0))} for row in values]
        assert [row for row in found if row is not None] == ROWS


@pytest.mark.spark
@pytest.mark.parametrize("name", FORMATS)
def test_on_spark(logs: Path, name: SchemaFormat, spark: SparkSession) -> None:
    options = {"subscribe": f"orders-{name}", "valueFormat": name, "schemaRegistry": str(logs)}
    options |= {"message": "shop.Order"} if name == "protobuf" else {}
    frame = spark.read.format("magicbyte").options(**options).load(str(logs))
    rows = frame.select("value", "_error").orderBy("offset").collect()
    assert [row.value and row.value.asDict(recursive=True) for row in rows] == EXPECTED
    assert all(row["_error"] is None for row in rows)


@pytest.mark.parametrize("name", FORMATS)
def test_confluents_deserializers_read_ours(name: SchemaFormat) -> None:
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    context = SerializationContext(f"orders-{name}", MessageField.VALUE)
    theirs = [SERIALIZERS[name](client, {})(row, context) for row in ROWS]
    records, _ = as_topic(client)
    registry = registry_of(records)
    found = registry.latest(f"orders-{name}-value")
    message = {"message": "shop.Order"} if name == "protobuf" else {}
    ours = encode(ROWS, found.schema, name, schema_id=found.id, registry=registry, **message).to_pylist()
    assert decode(ours, registry, name).field("value").to_pylist() == ROWS
    deserialize: Any = {
        "avro": lambda: AvroDeserializer(client),
        "protobuf": lambda: ProtobufDeserializer(Order, {"use.deprecated.format": False}, client),
        "json": lambda: JSONDeserializer(None, schema_registry_client=client),
    }[name]()
    read = [deserialize(value, context) for value in ours]
    assert read == [deserialize(value, context) for value in theirs]
    if name == "protobuf":
        read = [{"id": one.id, "buyer": {"name": one.buyer.name}} for one in read]
    assert read == ROWS


def registry_of(records: list[tuple[bytes, bytes, list[Any]]]) -> StoredRegistry:
    registry = StoredRegistry()
    for key, value, _ in records:
        apply(registry, key, value)
    return registry
