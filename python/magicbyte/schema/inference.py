"""A JSON Schema for values that have none, from a sample of them.

>>> from magicbyte.schema.inference import Inference
>>> inference = Inference()
>>> for value in (b'{"id": 1, "tag": "a"}', b'{"id": 2.5, "tag": null}', b"?"):
...     inference.add(value)
>>> inference.values, inference.not_json
(2, 1)
>>> inference.schema()["properties"]["id"]
{'type': 'number', '$comment': 'in 2 of 2 objects'}
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from magicbyte import bounded_json

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
    dict: "object",
}


class Inference:
    """The types of the values that were added, at 10,000 places of them at most."""

    def __init__(self) -> None:
        self.values = 0
        """The values that are JSON."""
        self.not_json = 0
        """The values that are not, which the schema says nothing of."""
        self._root = _Place()
        self._places = 1

    def add(self, value: bytes) -> None:
        """Adds a value of the sample."""
        try:
            document = bounded_json.loads(value)
        except (ValueError, RecursionError):
            self.not_json += 1
            return
        self.values += 1
        self._add(self._root, document, 0)

    def _add(self, place: _Place, value: Any, depth: int) -> None:
        place.types[_TYPES[type(value)]] += 1
        if isinstance(value, dict) and place.properties is not None:
            for name, item in value.items():
                if (inner := place.properties.get(name)) is None:
                    if len(place.properties) == _MAX_PROPERTIES or not self._has_room(depth):
                        place.properties = None
                        return
                    inner = place.properties[name] = _Place()
                self._add(inner, item, depth + 1)
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
        """The schema, of draft 7: every value of the sample is valid by it.

        A property that all objects of its place have is `required`; `$comment` says how many have it. An
        object with more than 200 names has no properties, since its names are data.
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

    def schema(self) -> dict[str, Any]:
        types = set(self.types)
        if "number" in types:
            # Which is an integer, too.
            types.discard("integer")
        names = sorted(types)
        if not names:
            return {}
        schema: dict[str, Any] = {"type": names[0] if len(names) == 1 else names}
        if "object" in types and self.properties:
            self._add_properties(schema, self.properties)
        if "array" in types and self.items is not None:
            schema["items"] = self.items.schema()
        return schema

    def _add_properties(self, schema: dict[str, Any], properties: dict[str, _Place]) -> None:
        objects = self.types["object"]
        counts = {name: sum(place.types.values()) for name, place in properties.items()}
        schema["properties"] = {
            name: place.schema() | {"$comment": f"in {counts[name]} of {objects} objects"}
            for name, place in properties.items()
        }
        if required := [name for name, count in counts.items() if count == objects]:
            schema["required"] = required
