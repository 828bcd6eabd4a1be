r"""A JSON Schema for values that have none, from a sample of them.

>>> from magicbyte.schema.inference import Inference
>>> inference = Inference()
>>> inference.add(b'{"id": 1, "tag": "a"}', b'\0\0\0\0\7{"id": 2.5, "tag": null}', b"?", None)
>>> inference.values, inference.not_json, inference.nulls
(2, 1, 1)
>>> inference.schema()["properties"]["id"]
{'type': 'number', '$comment': 'in 2 of 2 objects'}
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from magicbyte import bounded_json
from magicbyte.enums import Framing
from magicbyte.schema.decoding import ColumnDecoder
from magicbyte.schema.one_schema import OneSchema
from magicbyte.schema.registry import Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Inference"]

_MAX_PROPERTIES = 200
"""Names of an object above which its names are data: a map, not fields."""
_MAX_PLACES = 10_000
"""Properties and lists of all objects together; those beyond are not described."""
_MAX_DEPTH = 40
_TYPES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    tuple: "object",
}
_MAX_LONG = 2**63 - 1
_MAX_UNSIGNED = 2**64 - 1


class Inference:
    """The types of the values that were added, at 10,000 places of them at most.

    Args:
        framing: how values name their schemas, which is taken off; docs/schemas.md lists the framings.
        is_key: look at the column `key` of batches, not `value`.

    """

    def __init__(self, framing: Framing = "auto", *, is_key: bool = False) -> None:
        self.values = 0
        """The values that are JSON, as `decode` reads it."""
        self.not_json = 0
        """The values that are not, or have more than a million values in them; the schema says nothing of
        these."""
        self.nulls = 0
        self._root = _Place()
        self._places = 1
        # Whatever a value names, it is read without a schema.
        registry = None if framing == "none" else OneSchema(Schema("JSON", "true"))
        self._decoder = ColumnDecoder(registry, None, "json", framing=framing, is_key=is_key)

    def add(self, *values: bytes | None) -> None:
        """Adds values of the sample: many at a time take much less time than one by one."""
        import pyarrow as pa

        self.add_batch(pa.record_batch({self._decoder.column: pa.array(values, pa.binary())}))

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Adds the rows of a batch with the column, and maybe `headers`, which may name schemas.

        Raises:
            Error: if the column is not binary.

        """
        column, nulls = self._decoder.column, batch.column(self._decoder.column).null_count
        self.nulls += nulls
        # The JSON value null has no text either.
        json_nulls = batch.num_rows - nulls
        for piece, _ in self._decoder.replace(batch):
            errors = piece.num_rows - piece.column(self._decoder.error_column).null_count
            texts = piece.column(column).drop_null()
            self.not_json += errors
            json_nulls -= errors + len(texts)
            for text in texts.to_pylist():
                self._add_text(text)
        for _ in range(json_nulls):
            self._add_text("null")

    def _add_text(self, text: str) -> None:
        try:
            # Pairs, since a name may occur twice: its column has to read both values.
            document = bounded_json.loads(text, tuple)
        except (ValueError, RecursionError):
            self.not_json += 1
            return
        self.values += 1
        self._add(self._root, document, 0)

    def _add(self, place: _Place, value: Any, depth: int) -> None:
        place.add(value)
        if isinstance(value, tuple) and place.properties is not None:
            for name, item in value:
                if (inner := place.properties.get(name)) is None:
                    if len(place.properties) == _MAX_PROPERTIES or not self._has_room(depth):
                        place.properties = None
                        return
                    inner = place.properties[name] = _Place()
                self._add(inner, item, depth + 1)
            for name in {name for name, _ in value}:
                place.properties[name].objects += 1
        elif isinstance(value, list) and value:
            if place.items is None:
                if not self._has_room(depth):
                    return
                place.items = _Place()
            for item in value:
                self._add(place.items, item, depth + 1)

    def _has_room(self, depth: int) -> bool:
        """Takes a place, if there is one left."""
        if depth >= _MAX_DEPTH or self._places == _MAX_PLACES:
            return False
        self._places += 1
        return True

    def schema(self, title: str | None = None) -> dict[str, Any]:
        """The schema, of draft 7: every value of the sample is valid by it, and its column has each of them.

        A property that all objects of its place have is `required`; `$comment` says how many have it. An
        object with more than 200 names has no properties, since its names are data. Where integers need more
        than 64 bits, `minimum` or `maximum` says so, and where a number is larger than any double, there is
        no type: both make the column text.
        """
        head = {"$schema": "http://json-schema.org/draft-07/schema#"} | ({"title": title} if title else {})
        return head | self._root.schema()


class _Place:
    """The values at one place of the documents."""

    def __init__(self) -> None:
        self.types: Counter[str] = Counter()
        self.properties: dict[str, _Place] | None = {}
        """None if there are too many."""
        self.items: _Place | None = None
        self.objects = 0
        """The objects that have it as a property."""
        self._least = self._greatest = 0
        """Of the integers."""
        self._is_beyond_double = False

    def add(self, value: Any) -> None:
        """Counts a value, without those in it."""
        name = _TYPES[type(value)]
        self.types[name] += 1
        if name == "integer":
            self._least, self._greatest = min(self._least, value), max(self._greatest, value)
        if name in ("integer", "number"):
            self._is_beyond_double |= abs(value) > sys.float_info.max

    def schema(self) -> dict[str, Any]:
        types = set(self.types)
        if "number" in types:
            # Which is an integer, too.
            types.discard("integer")
        names = sorted(types)
        if not names or self._is_beyond_double:
            return {}
        schema: dict[str, Any] = {"type": names[0] if len(names) == 1 else names}
        if "integer" in types:
            # Limits that show in a double, too.
            if self._least < -_MAX_LONG - 1:
                schema["minimum"] = min(self._least, -_MAX_UNSIGNED)
            if self._greatest > _MAX_LONG:
                schema["maximum"] = max(self._greatest, _MAX_UNSIGNED)
        if "object" in types and self.properties:
            self._add_properties(schema, self.properties)
        if "array" in types and self.items is not None:
            schema["items"] = self.items.schema()
        return schema

    def _add_properties(self, schema: dict[str, Any], properties: dict[str, _Place]) -> None:
        objects = self.types["object"]
        schema["properties"] = {
            name: place.schema() | {"$comment": f"in {place.objects} of {objects} objects"}
            for name, place in properties.items()
        }
        if required := [name for name, place in properties.items() if place.objects == objects]:
            schema["required"] = required
