r"""The schemas that a column of keys or values names, counted without a look at each row.

>>> import pyarrow as pa
>>> from magicbyte.jobs.orphans.named_schemas import NamedSchemas
>>> batch = pa.record_batch({"value": pa.array([b"\0\0\0\0\7a", b"\0\0\0\0\7b", None, b"{}"], pa.binary())})
>>> named = NamedSchemas(batch, "value")
>>> named.values, named.counts
(3, Counter({SchemaName(schema=7, framing='confluent', in_header=False): 2}))
>>> [row for _, row in named.rows(named.counts)]
[0, 1]
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Literal, NamedTuple
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte.enums import Framing
from magicbyte.errors import InvalidRecordError
from magicbyte.schema import framing

if TYPE_CHECKING:
    from magicbyte.schema.framing import Framed

__all__ = ["Column", "NamedSchemas", "SchemaName"]

Column = Literal["key", "value"]
_Headers = tuple[tuple[str, bytes], ...]


class SchemaName(NamedTuple):
    """The name of a schema, and where it stands."""

    schema: int | bytes
    """An id above 0, a UUID of 16 bytes, or a fingerprint of 8 bytes, the most significant one first."""
    framing: Framing
    in_header: bool


class _Heads(NamedTuple):
    """Rows that begin alike."""

    names: dict[bytes, SchemaName]
    """The names by the bytes that have them."""
    heads: pa.BinaryArray
    """The first bytes of each row."""
    rows: pa.UInt64Array
    """The numbers of the rows."""


_GUID_BYTES = 17
"""The longest name in a header."""
_ZEROS = b"\0\0\0\0\0"
_HEADS: tuple[tuple[bytes, int, Framing], ...] = (
    (b"\0", 5, "auto"),
    (_ZEROS, 9, "apicurio"),
    (b"\1", 17, "auto"),
    (b"\3\0", 18, "auto"),
    (b"\3\5", 18, "auto"),
    (b"\xc3\1", 10, "auto"),
)
"""The first bytes of the framings of values, and the size of a value's part with the name.

No registry gives the id 0, so that four bytes of 0 begin an id of eight."""


class NamedSchemas:
    """The names of schemas in a column of a batch, by headers or the bytes.

    Args:
        batch: rows with the column, and maybe `headers`.
        column: `key` or `value`.

    """

    def __init__(self, batch: pa.RecordBatch, column: Column) -> None:
        self.counts: Counter[SchemaName] = Counter()
        """The number of rows that have each name."""
        values = batch.column(column)
        self.values = len(values) - values.null_count
        """The number of values that are not null."""
        self._in_headers: list[tuple[int, SchemaName]] = []
        self._heads: list[_Heads] = []
        bare = values.is_valid()
        if "headers" in batch.schema.names:
            by_row = _schema_headers(batch.column("headers"), column)
            if by_row:
                bare = pc.and_(bare, pa.array([row not in by_row for row in range(len(values))]))
                self._count_headers(values, by_row, is_key=column == "key")
        self._count_heads(values, bare)

    def _count_headers(self, values: pa.BinaryArray, by_row: dict[int, _Headers], *, is_key: bool) -> None:
        for row, headers in by_row.items():
            if values[row].is_valid and (name := _header_name(headers, is_key)) is not None:
                self._in_headers.append((row, name))
                self.counts[name] += 1

    def _count_heads(self, values: pa.BinaryArray, bare: pa.BooleanArray) -> None:
        starts = pc.binary_slice(values, 0, max(size for _, size, _ in _HEADS))
        begins = {prefix: pc.and_(bare, pc.starts_with(starts, prefix)) for prefix, _, _ in _HEADS}
        begins[b"\0"] = pc.and_not(begins[b"\0"], begins[_ZEROS])
        for prefix, size, kind in _HEADS:
            rows = pc.indices_nonzero(begins[prefix])
            if not len(rows):
                continue
            heads = pc.binary_slice(starts.take(rows), 0, size)
            names: dict[bytes, SchemaName] = {}
            for one in pc.value_counts(heads).to_pylist():
                head, count = one["values"], one["counts"]
                if (name := _name_of(framing.parse(head, framing=kind))) is not None:
                    names[head] = name
                    self.counts[name] += count
            self._heads.append(_Heads(names, heads, rows))

    def rows(self, wanted: Container[SchemaName]) -> Iterator[tuple[SchemaName, int]]:
        """The numbers of the rows that have one of these names, with the name."""
        for row, name in self._in_headers:
            if name in wanted:
                yield name, row
        for names, heads, rows in self._heads:
            if any(name in wanted for name in names.values()):
                for head, row in zip(heads.to_pylist(), rows.to_pylist(), strict=True):
                    if (found := names.get(head)) is not None and found in wanted:
                        yield found, row


def _schema_headers(headers: pa.ListArray, column: Column) -> dict[int, _Headers]:
    """The headers of each row that may name its schema, as far as the name reaches."""
    entries = pc.list_flatten(headers)
    keys = entries.field("key")
    names = framing.header_names(is_key=column == "key")
    # Not `equal`, since pyarrow loads pandas for its scalars.
    relevant = reduce(pc.or_, (pc.starts_with(keys, name) for name in names))
    found: dict[int, dict[str, bytes]] = defaultdict(dict)
    parents = pc.list_parent_indices(headers).filter(relevant).to_pylist()
    chosen = entries.filter(relevant)
    pairs = zip(chosen.field("key").to_pylist(), chosen.field("value").to_pylist(), strict=True)
    for row, (key, content) in zip(parents, pairs, strict=True):
        if key in names:
            found[row][key] = (content or b"")[:_GUID_BYTES]
    return {row: tuple(own.items()) for row, own in found.items()}


@lru_cache(1000)
def _header_name(headers: _Headers, is_key: bool) -> SchemaName | None:
    try:
        return _name_of(framing.parse(b"", headers, is_key=is_key), in_header=True)
    except InvalidRecordError:
        return None


def _name_of(framed: Framed | None, *, in_header: bool = False) -> SchemaName | None:
    if framed is None:
        return None
    if framed.id is not None:
        return SchemaName(framed.id, framed.framing, in_header) if framed.id > 0 else None
    named = framed.fingerprint if framed.guid is None else UUID(framed.guid).bytes
    return None if named is None else SchemaName(named, framed.framing, in_header)
