"""A real registry, and values of confluent-kafka's serializers in all formats, whose schemas use others.

The schemas are read from the registry itself, from its files, and from a topic `_schemas` with the same records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as ConfluentSchema
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from magicbyte import RecordsBuilder
from magicbyte.enums import SchemaFormat
from magicbyte.jobs.schemas import open_registry
from magicbyte.jobs.schemas import schemas as schemas_job
from magicbyte.schema import decode
from magicbyte.schema.registry import Registry
from registry_server import Apicurio

pytestmark = pytest.mark.interop

ROWS = [{"id": 1, "buyer": {"name": "ann"}}, {"id": 2, "buyer": {"name": "bo"}}]
FILES = """
    file {
      name: "typed/buyer.proto" package: "typed" syntax: "proto3"
      message_type {
        name: "Buyer" field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
      }
    }
    file {
      name: "typed/order.proto" package: "typed" syntax: "proto3" dependency: "typed/buyer.proto"
      message_type {
        name: "Order"
        field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }
        field { name: "buyer" number: 2 type: TYPE_MESSAGE type_name: ".typed.Buyer" label: LABEL_OPTIONAL }
      }
    }
"""


def as_avro(client: SchemaRegistryClient) -> list[bytes]:
    buyer = {"type": "record", "name": "typed.Buyer", "fields": [{"name": "name", "type": "string"}]}
    fields = [{"name": "id", "type": "long"}, {"name": "buyer", "type": "typed.Buyer"}]
    order = {"type": "record", "name": "typed.Order", "fields": fields}
    client.register_schema("typed-avro-buyer", ConfluentSchema(json.dumps(buyer), "AVRO"))
    used = [SchemaReference("typed.Buyer", "typed-avro-buyer", 1)]
    serialize = AvroSerializer(client, ConfluentSchema(json.dumps(order), "AVRO", used))
    return [serialize(row, SerializationContext("typed-avro", MessageField.VALUE)) for row in ROWS]


def as_protobuf(client: SchemaRegistryClient) -> list[bytes]:
    pool = descriptor_pool.DescriptorPool()
    for file in text_format.Parse(FILES, descriptor_pb2.FileDescriptorSet()).file:
        pool.Add(file)
    order = message_factory.GetMessageClass(pool.FindMessageTypeByName("typed.Order"))
    serialize = ProtobufSerializer(order, client, {"use.deprecated.format": False})
    context = SerializationContext("typed-protobuf", MessageField.VALUE)
    return [serialize(order(**row), context) for row in ROWS]


def as_json(client: SchemaRegistryClient) -> list[bytes]:
    buyer = {"title": "Buyer", "type": "object", "properties": {"name": {"type": "string"}}}
    order = {
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "buyer": {"$ref": "typed-buyer.json"}},
    }
    client.register_schema("typed-json-buyer", ConfluentSchema(json.dumps(buyer), "JSON"))
    used = [SchemaReference("typed-buyer.json", "typed-json-buyer", 1)]
    serialize = JSONSerializer(ConfluentSchema(json.dumps(order), "JSON", used), client, lambda row, _: row)
    return [serialize(row, SerializationContext("typed-json", MessageField.VALUE)) for row in ROWS]


WRITERS: dict[SchemaFormat, Any] = {"avro": as_avro, "protobuf": as_protobuf, "json": as_json}


def as_topic(registry: Registry, directory: Path) -> Path:
    """The records that a registry writes for its schemas."""
    builder = RecordsBuilder()
    for offset, one in enumerate(registry.snapshot().all_versions()):
        key = {"keytype": "SCHEMA", "subject": one.subject, "version": one.version, "magic": 1}
        value = {
            "subject": one.subject,
            "version": one.version,
            "id": one.id,
            "schemaType": one.schema.schema_type,
            "references": [
                {"name": used.name, "subject": used.subject, "version": used.version}
                for used in one.schema.references
            ],
            "schema": one.schema.text,
            "deleted": False,
        }
        builder.append(offset, 0, json.dumps(key).encode(), json.dumps(value).encode())
    (directory / "_schemas-0").mkdir(parents=True)
    (directory / "_schemas-0" / f"{0:020}.log").write_bytes(builder.build())
    return directory


def sources(url: str, directory: Path) -> Iterator[str]:
    yield url
    _, live = open_registry([url])
    schemas_job([url], str(directory / "files"))
    yield str(directory / "files")
    yield str(as_topic(live, directory / "topic"))


def test_values_of_all_formats_from_all_sources(apicurio: Apicurio, tmp_path: Path) -> None:
    # Apicurio now and then does not answer. This client repeats a request, but it would wait forever.
    client = SchemaRegistryClient({"url": apicurio.url, "timeout": 20})
    values = {name: write(client) for name, write in WRITERS.items()}
    for source in sources(apicurio.url, tmp_path):
        _, registry = open_registry([source])
        for name, payloads in values.items():
            result = decode(payloads, registry, name)
            assert result.field("_error").to_pylist() == [None, None], (source, name)
            assert result.field("value").to_pylist() == ROWS, (source, name)
