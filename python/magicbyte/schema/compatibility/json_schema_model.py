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
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin

from magicbyte import bounded_json
from magicbyte.schema.invalid_schema import InvalidSchemaError

__all__ = ["NAMED", "VALUES", "JsonSchema", "canonical", "parse_json_schema"]

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
VALUES = {"const", "enum", "default", "examples"}
"""Keywords with values, which may look like schemas."""
NAMED = {"properties", "patternProperties", "definitions", "$defs", "dependencies", "dependentSchemas"}
"""Keywords with schemas by names, which may be those of keywords."""


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
    places: dict[str, _Place] = {}
    for name, other in references:
        documents[name] = _Document(_loaded(other), documents, places)
    root = _Document(_loaded(text), documents, places)
    for name, document in documents.items():
        places.setdefault(_joined(root.top.address, name), (document, document.top))
    return root.root()


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


class _Base(NamedTuple):
    """A schema with an address of its own, and what is under it."""

    address: str
    loaded: Any
    anchors: dict[str, Any]


class _Document:
    """A text and its schemas: one object for each place, compared by identity."""

    def __init__(
        self,
        loaded: dict[str, Any] | bool,
        documents: dict[str, _Document],
        places: dict[str, _Place],
    ) -> None:
        self._loaded = loaded
        self._documents = documents
        self._places = places
        self._schemas: dict[int, JsonSchema] = {}
        draft = loaded.get("$schema") if isinstance(loaded, dict) else None
        # From draft 2019-09 on, keywords beside $ref count.
        self._beside = isinstance(draft, str) and ("2019-09" in draft or "2020-12" in draft)
        is_newest = isinstance(draft, str) and "draft-04" not in draft
        self._ids = ("$id",) if is_newest else ("$id", "id")
        self._bases: dict[int, _Base] = {}
        self.top = _Base("", loaded, {})
        self._find_bases()

    def _find_bases(self) -> None:
        """Notes the address that stands over each reference, and what has an address of its own."""
        left: list[tuple[Any, _Base]] = [(self._loaded, self.top)]
        while left:
            one, base = left.pop()
            if isinstance(one, list):
                left += ((item, base) for item in one)
            if not isinstance(one, dict):
                continue
            base = self._base_of(one, base)
            if self._reference(one) is not None:
                self._bases[id(one)] = base
            for keyword, value in one.items():
                if keyword in NAMED and isinstance(value, dict):
                    left += ((named, base) for named in value.values())
                elif keyword not in VALUES:
                    left.append((value, base))

    def _base_of(self, raw: dict[str, Any], base: _Base) -> _Base:
        for given in map(raw.get, self._ids):
            # Before 2019-09, what is beside a $ref does not count.
            if not isinstance(given, str) or ("$ref" in raw and not self._beside and raw is not self._loaded):
                continue
            address, _, anchor = given.partition("#")
            if address:
                base = _Base(_joined(base.address, address), raw, {})
                self._places.setdefault(base.address, (self, base))
            if anchor and not anchor.startswith("/"):
                base.anchors.setdefault(anchor, raw)
            break
        for given in (raw.get("$anchor"), raw.get("$dynamicAnchor")):
            if isinstance(given, str):
                base.anchors.setdefault(given, raw)
        if raw is self._loaded:
            self.top = base
        return base

    def _reference(self, raw: dict[str, Any]) -> str | None:
        newer = (raw.get("$dynamicRef"), raw.get("$recursiveRef")) if self._beside else ()
        return next((one for one in (raw.get("$ref"), *newer) if isinstance(one, str)), None)

    def root(self) -> JsonSchema:
        return self.schema(self._loaded)

    def schema(self, raw: Any) -> JsonSchema:
        if isinstance(raw, bool):
            return JsonSchema("empty" if raw else "false")
        if not isinstance(raw, dict):
            raise InvalidSchemaError(f"expected a schema, not {canonical(raw)[:_SHOWN]}")
        followed = 0
        document = self
        while (reference := document._reference(raw)) is not None:
            if document._beside and _constrains(raw):
                break
            followed += 1
            if followed > _MAX_REFERENCES:
                raise InvalidSchemaError(f"the reference {reference[:_SHOWN]} leads to itself")
            document, raw = document._target(reference, raw)
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
        if (reference := self._reference(raw)) is not None:
            target = {"$ref": reference}
            self._bases[id(target)] = self._bases.get(id(raw), self.top)
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

    def _target(self, reference: str, raw: dict[str, Any]) -> tuple[_Document, Any]:
        address, _, fragment = reference.partition("#")
        document, base = self, self._bases.get(id(raw), self.top)
        if address:
            document, base = self._place(address, base.address, reference)
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            if fragment not in base.anchors:
                raise InvalidSchemaError(f"$ref {reference[:_SHOWN]}: no schema has this anchor")
            return document, base.anchors[fragment]
        try:
            return document, _pointed(base.loaded, fragment, reference)
        except InvalidSchemaError:
            # Schemas of generators have pointers from the top under an $id of each property.
            return document, _pointed(document._loaded, fragment, reference)

    def _place(self, address: str, base: str, reference: str) -> _Place:
        joined = _joined(base, address)
        for name in (address, joined):
            if (document := self._documents.get(name)) is not None:
                return document, document.top
            if (place := self._places.get(name)) is not None:
                return place
        raise InvalidSchemaError(f"$ref {reference[:_SHOWN]}: no reference has this name")


_Place = tuple[_Document, _Base]


def _joined(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:
        return address


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
