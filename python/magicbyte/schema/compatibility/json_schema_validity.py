"""The validity of a JSON Schema, by the metaschema of its draft."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from magicbyte import bounded_json
from magicbyte.schema.compatibility.json_schema_model import NAMED, VALUES, JsonSchema
from magicbyte.schema.decoding import decode
from magicbyte.schema.invalid_schema import InvalidSchemaError

__all__ = ["refuse_invalid_schema"]

_SHOWN = 100
_METASCHEMAS = {
    "draft-04": "http://json-schema.org/draft-04/schema#",
    "draft-06": "http://json-schema.org/draft-06/schema#",
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
_UNNAMED = ("draft-07", "draft-04")
"""The drafts of a schema that names none: Confluent's registry takes the first, old texts mean the other."""


def refuse_invalid_schema(text: str, _: JsonSchema | None = None) -> None:
    """Raises InvalidSchemaError for a schema that is not valid by its draft, or has a pattern that is none.

    A schema with a `$schema` of its own is not looked at. Formats do not count, and references are not
    followed. Needs pyarrow.
    """
    document = bounded_json.loads(text)
    named = document.get("$schema") if isinstance(document, dict) else None
    drafts = _UNNAMED if named is None else [draft for draft in _METASCHEMAS if draft in str(named)]
    faults = [_fault(text, _METASCHEMAS[draft]) for draft in drafts]
    if faults and (first := faults[0]) is not None and None not in faults:
        raise InvalidSchemaError(f"not a JSON Schema of {drafts[0]}: {first}")
    for place, pattern in _patterns(document, "") if drafts else ():
        if not _is_pattern(pattern):
            raise InvalidSchemaError(f"{place}: {json.dumps(pattern)[:_SHOWN]} is no regular expression")


def _fault(text: str, metaschema: str) -> str | None:
    """The place where a schema differs from its metaschema, and how."""
    rules = json.dumps({"$schema": metaschema, "$ref": metaschema})
    rows = decode([text.encode()], None, "json", rules, validate=True)
    fault: str | None = rows.field("_error")[0].as_py()
    return fault


def _patterns(schema: Any, place: str) -> Iterator[tuple[str, str]]:
    """The regular expressions of a schema, with their places."""
    if isinstance(schema, list):
        for number, one in enumerate(schema):
            yield from _patterns(one, f"{place}/{number}")
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        where = f"{place}/{keyword}"
        if keyword == "pattern" and isinstance(value, str):
            yield where, value
        elif keyword in NAMED and isinstance(value, dict):
            for name, one in value.items():
                if keyword == "patternProperties":
                    yield where, name
                yield from _patterns(one, f"{where}/{name}")
        elif keyword not in VALUES:
            yield from _patterns(value, where)


def _is_pattern(pattern: str) -> bool:
    """True if it is one to Python, whose patterns have much that is Java's, or by JavaScript's rules."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        rows = decode([json.dumps(pattern).encode()], None, "json", '{"format": "regex"}', validate="formats")
        return rows.field("_error")[0].as_py() is None
    return True
