"""JSON Schemas as data: the schemas in a document, and the targets of their references.

A schema is one kind of constraint, or a combination of several, as in the library that Confluent's registry
parses them with (everit-json-schema, `SchemaLoader`): `{"type": "string", "enum": ["a"]}` is all of a string
and an enum, and `{"type": ["string", "null"]}` is any of two.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urljoin

from magicbyte import bounded_json
from magicbyte.schema.invalid_schema import InvalidSchemaError

__all__ = ["JsonSchema", "canonical", "parse_json_schema"]

_SHOWN = 100
_MAX_REFERENCES = 100
_TYPES = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "null": "null",
    "object": "object",
    "array": "array",
}
_SNIFFED = {
    "string": {"minLength", "maxLength", "pattern", "format"},
    "array": {
        *("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
        "unevaluatedItems",
    },
    "object": {
        *("properties", "required", "minProperties", "maxProperties", "dependencies", "additionalProperties"),
        *("patternProperties", "propertyNames", "dependentRequired", "dependentSchemas"),
        "unevaluatedProperties",
    },
    "number": {"multipleOf", "exclusiveMinimum", "exclusiveMaximum", "minimum", "maximum"},
}
"""The keywords that imply a kind without a type, by kind."""
_COMBINED = ("allOf", "anyOf", "oneOf")


@dataclass(eq=False)
class JsonSchema:
    """A schema."""

    kind: str
    """`empty` (also true), `false`, `combined`, `not`, `enum`, `const`, `conditional`, or a type; an integer
    is a `number`."""
    raw: dict[str, Any] = field(default_factory=dict)
    """The object around it, with keywords that may belong to other schemas."""
    integer: bool = False
    is_newer: bool = False
    """True by draft 2019-09 or 2020-12."""
    is_generated: bool = False
    """True for an `allOf` of what one object consists of, such as a type and an enum."""
    criterion: str = ""
    """The keyword of a `combined` schema: `allOf`, `anyOf` or `oneOf`."""
    branches: tuple[Branch, ...] = ()
    """The branches of a `combined` schema."""
    sub: Callable[[Any], JsonSchema] = field(default=lambda _: JsonSchema("empty"), repr=False)
    """Returns the schema in a part of `raw`."""

    @cached_property
    def identity(self) -> tuple[str, bool, str, str]:
        """An identity that is equal for schemas with the same content."""
        return self.kind, self.integer, self.criterion, canonical(self.raw)

    def part(self, key: str) -> JsonSchema | None:
        """The schema of a keyword, or None."""
        value = self.raw.get(key)
        return self.sub(value) if isinstance(value, dict | bool) else None

    def named_parts(self, key: str) -> dict[str, Any]:
        """The values of a keyword, by name."""
        value = self.raw.get(key)
        return value if isinstance(value, dict) else {}

    def all_branches(self) -> list[JsonSchema]:
        """The branches of a `combined` schema; references are followed now."""
        return [one for branch in self.branches for one in branch()]


Branch = Callable[[], Sequence[JsonSchema]]
"""A branch of a combination; in newer drafts it may count as several."""


def parse_json_schema(text: str, references: Sequence[tuple[str, str]] = ()) -> JsonSchema:
    """Parses a schema; references are resolved when they are used.

    Args:
        text: the schema.
        references: the names and texts of all schemas that it refers to.

    Raises:
        InvalidSchemaError: if one of them is not JSON, or neither an object nor a boolean.

    """
    documents: dict[str, _Document] = {}
    for name, other in references:
        documents[name] = document = _Document(_loaded(other), documents)
        if document.base:
            documents.setdefault(document.base, document)
    return _Document(_loaded(text), documents).root()


def canonical(value: Any) -> str:
    """JSON that is equal for equal values, whatever the order of keys."""
    return json.dumps(value, sort_keys=True)


def _loaded(text: str) -> dict[str, Any] | bool:
    try:
        document = bounded_json.loads(text)
    except RecursionError:
        raise InvalidSchemaError("the schema is nested too deeply") from None
    except ValueError as error:
        raise InvalidSchemaError(f"the schema is not JSON: {error}") from None
    if not isinstance(document, dict | bool):
        raise InvalidSchemaError("a JSON Schema is an object or a boolean")
    return document


class _Document:
    """A text and its schemas: one object for each place, compared by identity."""

    def __init__(self, loaded: dict[str, Any] | bool, documents: dict[str, _Document]) -> None:
        self._loaded = loaded
        self._documents = documents
        self._schemas: dict[int, JsonSchema] = {}
        top = loaded if isinstance(loaded, dict) else {}
        base = top.get("$id", top.get("id"))
        self.base = base.partition("#")[0] if isinstance(base, str) else ""
        draft = top.get("$schema")
        # From draft 2019-09 on, keywords beside $ref count.
        self._beside = isinstance(draft, str) and ("2019-09" in draft or "2020-12" in draft)

    def root(self) -> JsonSchema:
        return self.schema(self._loaded)

    def schema(self, raw: Any) -> JsonSchema:
        if isinstance(raw, bool):
            return JsonSchema("empty" if raw else "false")
        if not isinstance(raw, dict):
            raise InvalidSchemaError(f"expected a schema, not {canonical(raw)[:_SHOWN]}")
        followed = 0
        document = self
        while isinstance(raw.get("$ref"), str) and not (document._beside and _constrains(raw)):
            followed += 1
            if followed > _MAX_REFERENCES:
                raise InvalidSchemaError(f"the reference {raw['$ref'][:_SHOWN]} leads to itself")
            document, raw = document._target(raw["$ref"])
            if isinstance(raw, bool):
                return JsonSchema("empty" if raw else "false")
        return document._made(raw)

    def _made(self, raw: dict[str, Any]) -> JsonSchema:
        if (known := self._schemas.get(id(raw))) is None:
            known = self._schemas[id(raw)] = self._built(raw)
        return known

    def _built(self, raw: dict[str, Any]) -> JsonSchema:
        found = list(self._constraints(raw))
        if not found:
            return JsonSchema("empty", raw)
        if len(found) == 1:
            return found[0]
        return replace(self._combined(raw, "allOf", map(_constant, found)), is_generated=True)

    def _combined(self, raw: dict[str, Any], criterion: str, branches: Iterable[Branch]) -> JsonSchema:
        return JsonSchema(
            "combined",
            raw,
            is_newer=self._beside,
            criterion=criterion,
            branches=tuple(branches),
            sub=self.schema,
        )

    def _constraints(self, raw: dict[str, Any]) -> Iterator[JsonSchema]:
        if isinstance(reference := raw.get("$ref"), str):
            target = {"$ref": reference}
            yield self._combined(raw, "allOf", [lambda: [self.schema(target)]])
        if isinstance(raw.get("enum"), list):
            yield JsonSchema("enum", raw)
        if "const" in raw:
            yield JsonSchema("const", raw)
        if isinstance(raw.get("not"), dict | bool):
            yield JsonSchema("not", raw, sub=self.schema)
        if any(key in raw for key in ("if", "then", "else")):
            yield JsonSchema("conditional", raw)
        for criterion in _COMBINED:
            if isinstance(given := raw.get(criterion), list):
                yield self._combined(raw, criterion, map(self._branch, given))
        type_ = raw.get("type")
        if isinstance(type_, list):
            yield self._combined(raw, "anyOf", [_constant(self._typed(raw, one)) for one in type_])
        elif type_ is not None:
            yield self._typed(raw, type_)
        else:
            for kind, keywords in _SNIFFED.items():
                if not keywords.isdisjoint(raw):
                    yield JsonSchema(kind, raw, is_newer=self._beside, sub=self.schema)

    def _branch(self, raw: Any) -> Branch:
        def parts() -> Sequence[JsonSchema]:
            schema = self.schema(raw)
            # Confluent translates newer drafts to the classes of older ones. What a branch consists of then
            # counts as so many branches.
            is_several = self._beside and schema.is_generated and schema.raw is raw
            return schema.all_branches() if is_several else [schema]

        return parts

    def _typed(self, raw: dict[str, Any], type_: Any) -> JsonSchema:
        if not isinstance(type_, str) or type_ not in _TYPES:
            raise InvalidSchemaError(f"type: {canonical(type_)[:_SHOWN]} is unknown")
        kind = _TYPES[type_]
        return JsonSchema(kind, raw, integer=type_ == "integer", is_newer=self._beside, sub=self.schema)

    def _target(self, reference: str) -> tuple[_Document, Any]:
        place, _, fragment = reference.partition("#")
        document = self
        if place and place != self.base:
            found = self._documents.get(place) or self._documents.get(urljoin(self.base, place))
            if found is None:
                raise InvalidSchemaError(f"$ref {reference[:_SHOWN]}: no reference has this name")
            document = found
        fragment = unquote(fragment)
        if not fragment or fragment.startswith("/"):
            return document, _pointed(document._loaded, fragment, reference)
        return document, document._anchored(fragment, reference)

    def _anchored(self, anchor: str, reference: str) -> Any:
        left: list[Any] = [self._loaded]
        while left:
            one = left.pop()
            if isinstance(one, dict):
                if one.get("$anchor") == anchor or f"#{anchor}" in (one.get("$id"), one.get("id")):
                    return one
                left += one.values()
            elif isinstance(one, list):
                left += one
        raise InvalidSchemaError(f"$ref {reference[:_SHOWN]}: no schema has this anchor")


def _constrains(raw: dict[str, Any]) -> bool:
    """True if an object with a reference also has its own constraints."""
    own = {"enum", "const", "not", "if", "then", "else", "type", *_COMBINED}
    return any(key in own or any(key in keywords for keywords in _SNIFFED.values()) for key in raw)


def _constant(schema: JsonSchema) -> Branch:
    return lambda: [schema]


def _pointed(document: Any, pointer: str, reference: str) -> Any:
    found = document
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isascii() and key.isdigit() and int(key[:9]) < len(found):
            found = found[int(key[:9])]
        else:
            raise InvalidSchemaError(f"$ref {reference[:_SHOWN]}: the schema has no such place")
    if not isinstance(found, dict | bool):
        raise InvalidSchemaError(f"$ref {reference[:_SHOWN]}: there is no schema at that place")
    return found
