"""The schemas of a registry that read a sample of values whose own schema is not there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from magicbyte.errors import Error
from magicbyte.jobs.orphans.named_schemas import Column
from magicbyte.jobs.orphans.value_sample import SampledValue
from magicbyte.schema.decoding import SCHEMA_TYPES, ColumnDecoder
from magicbyte.schema.one_schema import OneSchema
from magicbyte.schema.registry import DEFAULT_CONTEXT, Schema, StoredRegistry

__all__ = ["sample_readers", "values_read"]

_CANDIDATES = 50
"""Schemas that are tried."""
_FORMATS = {schema_type: name for name, schema_type in SCHEMA_TYPES.items()}
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def sample_readers(
    registry: StoredRegistry,
    subject: str,
    named: int | bytes,
    sample: Sequence[SampledValue],
    column: Column,
) -> list[str]:
    """The schemas that read all values of a sample, by id, UUID or version: the likeliest first.

    50 are tried: those of the subject, those with the nearest ids, and those that have a UUID. JSON has to be
    valid by a schema. A schema that reads a value to its last byte need not be the one that wrote it.
    """
    if not sample:
        return []
    tried: dict[Schema, str] = {}
    for name, schema in _candidates(registry, subject, named):
        if len(tried) == _CANDIDATES:
            break
        tried.setdefault(schema, name)
    return [
        name
        for schema, name in tried.items()
        if values_read(registry, schema, sample, column, validate=True) == len(sample)
    ]


def _candidates(registry: StoredRegistry, subject: str, named: int | bytes) -> Iterator[tuple[str, Schema]]:
    ids = [number for context, number in registry.schemas if context == DEFAULT_CONTEXT]
    near = named if isinstance(named, int) else max(ids, default=0)
    own = registry.versions(subject, deleted=True)
    for version in sorted(own, key=lambda one: (one.id is None, abs((one.id or 0) - near))):
        name = f"version {version.version} of {subject}" if version.id is None else str(version.id)
        yield name, version.schema
    for number in sorted(ids, key=lambda number: (abs(number - near), number)):
        yield str(number), registry.by_id(number)
    yield from sorted(registry.uuids.items(), key=lambda item: item[0])


def values_read(
    registry: StoredRegistry,
    schema: Schema,
    sample: Sequence[SampledValue],
    column: Column,
    *,
    validate: bool = False,
) -> int:
    """The number of values that a schema reads, whatever they name; `validate` is for JSON."""
    if (format := _FORMATS.get(schema.schema_type)) is None:
        return 0
    batch = pa.record_batch(
        {
            column: pa.array([value.data for value in sample], pa.binary()),
            "headers": pa.array([value.headers for value in sample], _HEADERS),
        }
    )
    try:
        decoder = ColumnDecoder(
            OneSchema(schema, registry),
            None,
            format,
            is_key=column == "key",
            validate=validate and format == "json",
        )
        return sum(piece.column(decoder.error_column).null_count for piece, _ in decoder.replace(batch))
    except (Error, ValueError):
        return 0
