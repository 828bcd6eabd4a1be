"""The schemas that the keys or values of a topic name: how often, whether they are known, and a sample."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import pyarrow as pa

from magicbyte.jobs.orphans.named_schemas import Column, NamedSchemas, SchemaName
from magicbyte.jobs.orphans.value_sample import SampledValue, ValueSample
from magicbyte.schema.registry import Schema, SchemaNotFoundError, StoredRegistry

__all__ = ["ColumnNames", "KnownSchemas"]

_MAX_NAMES = 10_000
"""Missing names that are counted one by one: bytes that are no framing may name any."""
_SAMPLED = 200
"""Values of a missing name that are sampled."""
_SAMPLED_BYTES = 8 << 20
_KNOWN_NAMES = 20
"""Known names whose values are sampled."""
_KNOWN_SAMPLED = 20
"""Values of each of these."""
_KNOWN_BYTES = 2 << 20


class KnownSchemas:
    """The schemas of a registry by their names in keys and values, in any context."""

    def __init__(self, registry: StoredRegistry) -> None:
        self.registry = registry
        self._by_id = {number: schema for (_, number), schema in registry.schemas.items()}
        self.has_id_0 = 0 in self._by_id
        """Files may give a schema the id 0: then no value has an id of 8 bytes."""

    def find(self, name: SchemaName) -> Schema | None:
        """The schema with a name; None if there is none."""
        named = name.schema
        if isinstance(named, int):
            return self._by_id.get(named)
        try:
            if len(named) == 16:
                return self.registry.by_guid(str(UUID(bytes=named)))
            return self.registry.by_fingerprint(named)
        except SchemaNotFoundError:
            return None


class ColumnNames:
    """The names in a column, which is added batch by batch."""

    def __init__(self, schemas: KnownSchemas, column: Column) -> None:
        self.column = column
        self.schemas = schemas
        self.values = 0
        """The values that are not null."""
        self.known: Counter[SchemaName] = Counter()
        """The values that have each name of a known schema."""
        self.missing: Counter[SchemaName] = Counter()
        """The values that have each other name, of 10,000 names."""
        self.others = 0
        """The values that have further names."""
        self.sample = ValueSample(_SAMPLED_BYTES)
        """The first 200 values of each missing name, in 8 MiB."""
        self.known_sample = ValueSample(_KNOWN_BYTES)
        """The first 20 values of each of 20 known names, in 2 MiB."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the rows of a batch with the column and `headers`."""
        named = NamedSchemas(batch, self.column)
        self.values += named.values
        wanted: dict[SchemaName, int] = {}
        for name, count in named.counts.items():
            if (left := self._count(name, count)) > 0:
                wanted[name] = left
        for name, row in named.rows(wanted):
            if wanted[name]:
                wanted[name] -= 1
                headers = [(one["key"], one["value"]) for one in batch.column("headers")[row].as_py() or ()]
                value = SampledValue(batch.column(self.column)[row].as_py(), headers)
                (self.known_sample if name in self.known else self.sample).add(name, value)

    def _count(self, name: SchemaName, count: int) -> int:
        """Counts values with a name. Returns how many of them may be sampled."""
        if name.framing == "apicurio" and not name.in_header and self.schemas.has_id_0:
            return 0
        if name in self.known or (name not in self.missing and self.schemas.find(name)):
            self.known[name] += count
            seen = self.known_sample.seen(name)
            return _KNOWN_SAMPLED - seen if seen or len(self.known) <= _KNOWN_NAMES else 0
        if name in self.missing or len(self.missing) < _MAX_NAMES:
            self.missing[name] += count
            return _SAMPLED - self.sample.seen(name)
        self.others += count
        return 0
