"""The defaults of Avro fields: which of them are values of their types."""

from __future__ import annotations

import json
import re
from typing import Any

from magicbyte.schema.compatibility.avro_schema import AvroField, AvroSchema
from magicbyte.schema.invalid_schema import InvalidSchemaError

__all__ = ["Defaults", "refuse_invalid_defaults"]

_SHOWN = 100
_MAX_DEPTH = 100
"""The nesting depth of a default's values, as for decoders."""
_INTEGERS = {"int": 1 << 31, "long": 1 << 63}
_WORDS = {"null": type(None), "boolean": bool, "string": str, "bytes": str, "fixed": str}
_NUMBER = re.compile(
    r"[\0- ]*[+-]?(?:NaN|Infinity|(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?[dDfF]?)[\0- ]*"
)
"""A text that Java's `Double.valueOf` takes; hexadecimal ones are left out."""


class Defaults:
    """Says whether defaults of fields are values of their types, each looked at once."""

    def __init__(self, *, strict: bool) -> None:
        """With `strict` by the rules of Java's `Schema.isValidDefault`; without, as decoders read them.

        Decoders, ours and Java's, take any number for an integer, and anything for an array or map without
        items.
        """
        self._strict = strict
        self._known: dict[int, bool] = {}

    def has_value(self, field: AvroField, depth: int = 0) -> bool:
        """True if a field has a default, and it is a value of the field's type."""
        if (known := self._known.get(id(field))) is None:
            # A default that contains itself has no end.
            self._known[id(field)] = False
            known = self._known[id(field)] = field.has_default and self._is_value(field, depth)
        return known

    def _is_value(self, field: AvroField, depth: int) -> bool:
        # Java makes a number of text, but not of text inside another default.
        is_text = field.schema.type in ("float", "double") and isinstance(field.default, str)
        if is_text:
            return _NUMBER.fullmatch(field.default) is not None
        return self._takes(field.schema, field.default, depth)

    def _takes(self, schema: AvroSchema, value: Any, depth: int) -> bool:
        kind = schema.type
        if depth > _MAX_DEPTH:
            return False
        if kind in _WORDS:
            return isinstance(value, _WORDS[kind])
        if kind in ("int", "long", "float", "double"):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not self._strict or kind not in _INTEGERS:
                return is_number
            limit = _INTEGERS[kind]
            return is_number and isinstance(value, int) and -limit <= value < limit
        if kind == "enum":
            return value in schema.symbols
        if kind == "union":
            return any(self._takes(branch, value, depth + 1) for branch in schema.branches)
        if self._strict and not isinstance(value, list if kind == "array" else dict):
            return False
        if kind == "record":
            given = value if isinstance(value, dict) else {}
            return all(
                self._takes(one.schema, given[one.name], depth + 1)
                if one.name in given
                else self.has_value(one, depth + 1)
                for one in schema.fields
            )
        items = value if isinstance(value, list) and kind == "array" else []
        if isinstance(value, dict):
            items = list(value.values())
        return schema.item is not None and all(self._takes(schema.item, one, depth + 1) for one in items)


def refuse_invalid_defaults(schema: AvroSchema) -> None:
    """Raises InvalidSchemaError for a default that is no value of its field's type, as Java's parser does.

    A registry refuses such a schema only if it is new. A symbol that an enum does not have is refused here,
    too, since Java's reader fails on it.
    """
    defaults = Defaults(strict=True)
    seen: set[int] = set()
    left = [(schema, "")]
    while left:
        one, place = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        for number, field in enumerate(one.fields):
            where = f"{place}/fields/{number}"
            if field.has_default and not defaults.has_value(field):
                shown = json.dumps(field.default)[:_SHOWN]
                of = field.schema.shown[:_SHOWN]
                raise InvalidSchemaError(
                    f"{where}: {field.name[:_SHOWN]}: the default {shown} is no value of the type {of}"
                )
            left.append((field.schema, f"{where}/type"))
        left += ((branch, f"{place}/{number}") for number, branch in enumerate(one.branches))
        if one.item is not None:
            left.append((one.item, f"{place}/{'items' if one.type == 'array' else 'values'}"))
