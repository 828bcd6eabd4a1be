"""Fingerprints of Avro schemas, by which single objects name the schema that they were written with.

>>> from magicbyte.schema.avro_fingerprint import canonical_form, fingerprint
>>> canonical_form('{"type": "fixed", "name": "Id", "namespace": "a", "size": 4, "doc": "an id"}')
'{"name":"a.Id","type":"fixed","size":4}'
>>> fingerprint('"int"').hex()
'7275d51a3f395c8f'
"""

from __future__ import annotations

from collections.abc import Sequence

from magicbyte.schema.compatibility.avro_schema import AvroSchema, parse_avro

__all__ = ["canonical_form", "fingerprint"]

_EMPTY = 0xC15D213AA4D7A795


def _table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_EMPTY if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def fingerprint(text: str, references: Sequence[tuple[str, str]] = ()) -> bytes:
    """The CRC-64-AVRO of a schema's canonical form: 8 bytes, the most significant one first.

    Raises as `canonical_form`.
    """
    value = _EMPTY
    for byte in canonical_form(text, references).encode():
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value.to_bytes(8, "big")


def canonical_form(text: str, references: Sequence[tuple[str, str]] = ()) -> str:
    """The Parsing Canonical Form of a schema, as Avro's `SchemaNormalization` makes it.

    Args:
        text: the schema.
        references: the names and texts of all schemas that it uses, each after its own references. Their
            definitions come where the schema uses them first.

    Raises:
        InvalidSchemaError: if one of them is not an Avro schema, or is nested more deeply than 150 levels.

    """
    parts: list[str] = []
    _append(parse_avro(text, references), set(), parts)
    return "".join(parts)


def _append(schema: AvroSchema, defined: set[str], parts: list[str]) -> None:
    if schema.name:
        if schema.name in defined:
            parts.append(f'"{schema.name}"')
            return
        defined.add(schema.name)
        parts.append(f'{{"name":"{schema.name}","type":"{schema.type}"')
    match schema.type:
        case "union":
            parts.append("[")
            for number, branch in enumerate(schema.branches):
                parts.append("," if number else "")
                _append(branch, defined, parts)
            parts.append("]")
        case "array" | "map":
            parts.append(f'{{"type":"{schema.type}","{"items" if schema.type == "array" else "values"}":')
            if schema.item is not None:
                _append(schema.item, defined, parts)
            parts.append("}")
        case "record":
            parts.append(',"fields":[')
            for number, field in enumerate(schema.fields):
                parts.append(f'{"," if number else ""}{{"name":"{field.name}","type":')
                _append(field.schema, defined, parts)
                parts.append("}")
            parts.append("]}")
        case "enum":
            symbols = ",".join(f'"{symbol}"' for symbol in schema.symbols)
            parts.append(f',"symbols":[{symbols}]}}')
        case "fixed":
            parts.append(f',"size":{schema.size}}}')
        case primitive:
            parts.append(f'"{primitive}"')
