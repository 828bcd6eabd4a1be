"""Logs of Avro values whose schema grows, with files of the schemas beside them."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
from magicbyte import RecordsBuilder
from magicbyte.options.typed import TypedColumns

Schema = dict[str, Any]


def record(name: str, /, **fields: Any) -> Schema:
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": field, "type": type, **({} if required(type, default) else {"default": default})}
            for field, (type, default) in fields.items()
        ],
    }


def required(type: Any, default: Any) -> bool:
    """Whether a field has no default: None is one for what may be null."""
    return default is None and not (isinstance(type, list) and type[0] == "null")


def array(items: Any) -> Schema:
    return {"type": "array", "items": items}


def logical(type: str, meaning: str, **more: Any) -> Schema:
    return {"type": type, "logicalType": meaning, **more}


def mapping(values: Any) -> Schema:
    return {"type": "map", "values": values}


class TypedLog:
    """The partitions of a topic, to which records with a schema are appended."""

    def __init__(self, root: Path, partitions: int = 2, topic: str = "orders") -> None:
        self._topic = topic
        self.root = root / "logs"
        self.registry = root / "registry.json"
        self.rows: list[dict[str, Any]] = []
        """All values, in the order in which they were appended to the partitions in turn."""
        self._ends = [0] * partitions
        self._schemas: list[Schema] = []
        for partition in range(partitions):
            self._directory(partition).mkdir(parents=True)

    def _directory(self, partition: int) -> Path:
        return self.root / f"{self._topic}-{partition}"

    def write_registry(self) -> None:
        files = {}
        for number, schema in enumerate(self._schemas, 1):
            path = self.registry.with_name(f"{number}.avsc")
            path.write_text(json.dumps(schema))
            files[str(number)] = path.name
        files[f"{self._topic}-value"] = f"{len(self._schemas)}.avsc"
        self.registry.write_text(json.dumps(files))

    def append(self, schema: Schema, values: Sequence[dict[str, Any]], *, segment: int | None = None) -> None:
        """Appends a batch of values to each partition; `schema` becomes the latest one of the subject."""
        if schema not in self._schemas:
            self._schemas.append(schema)
        self.write_registry()
        number = self._schemas.index(schema) + 1
        parsed = fastavro.parse_schema(schema)
        for partition, offset in enumerate(self._ends):
            builder = RecordsBuilder()
            for place, value in enumerate(values):
                out = io.BytesIO()
                fastavro.schemaless_writer(out, parsed, value)
                framed = b"\0" + struct.pack(">I", number) + out.getvalue()
                builder.append(offset + place, 1000 + offset + place, b"k%d" % place, framed)
                self.rows.append({"partition": partition, "offset": offset + place, "value": value})
            self._ends[partition] += len(values)
            bases = sorted(self._directory(partition).glob("*.log"))
            base = self._directory(partition) / f"{offset if segment or not bases else 0:020d}.log"
            path = base if segment or not bases else bases[-1]
            with open(path, "ab") as file:
                file.write(builder.build())

    @property
    def typed(self) -> TypedColumns:
        return TypedColumns(schema_registry=str(self.registry), value_format="avro")
