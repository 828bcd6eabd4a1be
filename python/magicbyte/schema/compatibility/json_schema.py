"""Compatibility of JSON Schemas: the rules of Confluent's `SchemaDiff`.

The rules compare texts, not sets of values, so they reject some changes that are compatible. An object
without `additionalProperties` is open: it accepts any further property. An added property with a type
therefore narrows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

from magicbyte.schema.compatibility.incompatibility import Incompatibility
from magicbyte.schema.compatibility.json_schema_model import JsonSchema, canonical
from magicbyte.schema.compatibility.json_schema_rules import LENIENT
from magicbyte.schema.invalid_schema import InvalidSchemaError

__all__ = ["incompatibilities"]

_LISTED = 100
_MAX_COMPARISONS = 200_000
_SHOWN = 100


class _Difference(NamedTuple):
    rule: str
    path: tuple[str, ...]
    message: str


def incompatibilities(
    reader: JsonSchema, writer: JsonSchema, *, lenient: bool = False
) -> list[Incompatibility]:
    """The first 100 reasons why the reader may reject values that the writer accepts; empty without any.

    Args:
        reader: Confluent's `update`.
        writer: Confluent's `original`.
        lenient: use the rules of a subject with the policy `LENIENT`: it may add properties to an open
            object, and properties that its additional properties do not cover.

    Raises:
        InvalidSchemaError: if a reference leads nowhere, or the schemas are too deep or too large.

    """
    try:
        found = _Comparison(lenient).compare(writer, reader)
    except RecursionError:
        raise InvalidSchemaError("the schemas are too deep to be compared") from None
    return [Incompatibility(one.rule, "#/" + "/".join(one.path), one.message) for one in found]


class _Comparison:
    def __init__(self, lenient: bool) -> None:
        self._allowed = LENIENT if lenient else frozenset()
        self._found: dict[tuple[int, int], list[_Difference] | None] = {}
        # Keeps the objects behind the ids alive, so that no other object gets the same id.
        self._kept: list[JsonSchema] = []

    def compare(self, old: JsonSchema | None, new: JsonSchema | None, *path: str) -> list[_Difference]:
        """The values of the old schema that the new schema rejects; paths begin with `path`."""
        if new is None:
            return []
        if old is None:
            return _under(path, [_Difference("SCHEMA_ADDED", (), "the writer has no schema here")])
        pair = (id(old), id(new))
        if pair not in self._found:
            if len(self._found) > _MAX_COMPARISONS:
                raise InvalidSchemaError("the schemas are too large to be compared")
            self._kept += (old, new)
            # Compatible until proven otherwise: this is how recursion ends.
            self._found[pair] = None
            differences = (
                difference
                for difference in self._differences(old, new)
                if difference.rule not in self._allowed
            )
            self._found[pair] = list(islice(differences, _LISTED))
        return _under(path, self._found[pair] or [])

    def _differences(self, old: JsonSchema, new: JsonSchema) -> Iterator[_Difference]:
        if self._by_a_branch(old, new):
            return
        if old.kind != new.kind:
            both_bytes = old.raw.get("connect.type") == new.raw.get("connect.type") == "bytes"
            if old.kind != "false" and new.kind != "empty" and not both_bytes:
                yield _Difference("TYPE_CHANGED", (), f"{_shown(old)} became {_shown(new)}")
            return
        rules: Mapping[str, Callable[[JsonSchema, JsonSchema], Iterator[_Difference]]] = {
            "string": _strings,
            "number": _numbers,
            "enum": _enums,
            "const": _constants,
            "not": self._nots,
            "combined": self._combined,
            "object": self._objects,
            "array": self._arrays,
        }
        if old.kind in rules:
            yield from rules[old.kind](old, new)

    def _by_a_branch(self, old: JsonSchema, new: JsonSchema) -> bool:
        """True if a schema is compatible with one branch of a combination, and that is enough."""
        if old.kind != "combined" and new.kind == "combined":
            branches = new.all_branches()
            if len(branches) == 1 or new.criterion != "allOf":
                return any(not self.compare(old, branch) for branch in branches)
        elif old.kind == "combined" and new.kind != "combined":
            branches = old.all_branches()
            if len(branches) == 1 or old.criterion == "allOf":
                return any(not self.compare(branch, new) for branch in branches)
        return False

    def _nots(self, old: JsonSchema, new: JsonSchema) -> Iterator[_Difference]:
        if self.compare(new.part("not"), old.part("not")):
            yield _Difference("NOT_TYPE_EXTENDED", ("not",), "the reader excludes more than the writer")

    def _combined(self, old: JsonSchema, new: JsonSchema) -> Iterator[_Difference]:
        before, after = old.all_branches(), new.all_branches()
        if old.criterion != new.criterion and new.criterion != "anyOf":
            to_one = len(after) == 1 and (len(before) == 1 or old.criterion == "allOf")
            if not to_one and (len(before) > 1 or new.criterion != "oneOf"):
                text = f"{old.criterion} became {new.criterion}"
                yield _Difference("COMBINED_TYPE_CHANGED", (), text)
                return
        before = [*{one.identity: one for one in reversed(before)}.values()][::-1]
        after = [*{one.identity: one for one in reversed(after)}.values()][::-1]
        numbers = f"{len(before)} branches became {len(after)}"
        if len(before) < len(after) and new.criterion == "allOf":
            yield _Difference("PRODUCT_TYPE_EXTENDED", (), numbers)
        elif len(before) > len(after) and old.criterion != "allOf":
            yield _Difference("SUM_TYPE_NARROWED", (), numbers)
        edges = [
            [number for number, reader in enumerate(after) if not self.compare(writer, reader)]
            for writer in before
        ]
        if _matched(edges) < min(len(before), len(after)):
            text = f"not every branch of {new.criterion} has a compatible one of its own"
            yield _Difference("COMBINED_TYPE_SUBSCHEMAS_CHANGED", (), text)

    def _objects(self, old: JsonSchema, new: JsonSchema) -> Iterator[_Difference]:
        before, after = old.named_parts("properties"), new.named_parts("properties")
        was_required, is_required = _names(old, "required"), _names(new, "required")
        for name in before:
            if name in after and name in is_required - was_required and not _has_default(after[name]):
                text = f"the property {name} became required, without a default"
                yield _Difference("REQUIRED_ATTRIBUTE_ADDED", ("required", name), text)
        for name in {**before, **after}:
            if name not in after:
                differences = self._removed_property(old.sub(before[name]), new, name)
            elif name not in before:
                need = ("REQUIRED" if name in is_required else "OPTIONAL") + "_PROPERTY"
                if name in is_required and _has_default(after[name]):
                    need += "_WITH_DEFAULT"
                differences = self._added_property(old, new.sub(after[name]), name, need)
            else:
                differences = iter(self.compare(old.sub(before[name]), new.sub(after[name])))
            yield from _under(("properties", name), differences)
        yield from self._dependencies(old, new)
        yield from self._further(old, new, "additionalProperties", "ADDITIONAL_PROPERTIES")
        yield from self._unevaluated(old, new, "unevaluatedProperties", "UNEVALUATED_PROPERTIES")
        yield from _limits(old, new, "maxProperties", "MAX_PROPERTIES", upper=True)
        yield from _limits(old, new, "minProperties", "MIN_PROPERTIES", upper=False)

    def _removed_property(self, was: JsonSchema, new: JsonSchema, name: str) -> Iterator[_Difference]:
        if _is_open(new):
            return
        covering = _covering(new, name)
        if covering is not None:
            if differences := self.compare(was, covering):
                yield from differences
                text = f"the property {name} was removed, and further properties have another schema"
                yield _Difference("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", (), text)
        elif was.kind != "false":
            text = f"the property {name} was removed, and the reader accepts no further properties"
            yield _Difference("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", (), text)

    def _added_property(
        self, old: JsonSchema, added: JsonSchema, name: str, need: str
    ) -> Iterator[_Difference]:
        if _is_open(old):
            if added.kind != "empty":
                text = f"the property {name} was added, and the writer accepts any value for it"
                yield _Difference(f"{need}_ADDED_TO_OPEN_CONTENT_MODEL", (), text)
            return
        covering = _covering(old, name)
        if covering is not None and (differences := self.compare(covering, added)):
            yield from differences
            text = f"the property {name} was added, and differs from the writer's further properties"
            yield _Difference("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", (), text)
        if need == "REQUIRED_PROPERTY":
            text = f"the property {name} was added, and is required without a default"
            yield _Difference("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", (), text)

    def _dependencies(self, old: JsonSchema, new: JsonSchema) -> Iterator[_Difference]:
        before = {**old.named_parts("dependencies"), **old.named_parts("dependentRequired")}
        after = {**new.named_parts("dependencies"), **new.named_parts("dependentRequired")}
        for name, needs in after.items():
            if not isinstance(needs, list):
                continue
            path, wanted = ("dependencies", name), set(map(canonical, needs))
            if not isinstance(before.get(name), list):
                yield _Difference("DEPENDENCY_ARRAY_ADDED", path, f"{name} has dependencies")
                continue
            known = set(map(canonical, before[name]))
            if wanted > known:
                yield _Difference("DEPENDENCY_ARRAY_EXTENDED", path, f"{name} has more dependencies")
            elif not wanted <= known:
                yield _Difference("DEPENDENCY_ARRAY_CHANGED", path, f"{name} has other dependencies")
        before = {**old.named_parts("dependencies"), **old.named_parts("dependentSchemas")}
        after = {**new.named_parts("dependencies"), **new.named_parts("dependentSchemas")}
        for name, schema in after.items():
            if isinstance(schema, list):
                continue
            if name not in before or isinstance(before[name], list):
                path = ("dependencies", name)
                yield _Difference("DEPENDENCY_SCHEMA_ADDED", path, f"{name} has a dependency")
            else:
                yield from self.compare(old.sub(before[name]), new.sub(schema), "dependencies", name)

    def _arrays(self, old: JsonSchema, new: JsonSchema) -> Iterator[_Difference]:
        before, after = _items(old), _items(new)
        yield from self.compare(before.each, after.each, "items")
        for number in range(max(len(before.first), len(after.first))):
            if number >= len(after.first):
                differences = self._removed_item(old.sub(before.first[number]), new, after)
            elif number >= len(before.first):
                differences = self._added_item(old, before, new.sub(after.first[number]))
            else:
                differences = iter(self.compare(old.sub(before.first[number]), new.sub(after.first[number])))
            yield from _under(("items", str(number)), differences)
        yield from self._further(old, new, "additionalItems", "ADDITIONAL_ITEMS", before.rest, after.rest)
        yield from self._unevaluated(old, new, "unevaluatedItems", "UNEVALUATED_ITEMS")
        for keyword, rule in (("Items", "ITEMS"), ("Contains", "CONTAINS")):
            yield from _limits(old, new, f"max{keyword}", f"MAX_{rule}", upper=True)
            yield from _limits(old, new, f"min{keyword}", f"MIN_{rule}", upper=False)
        if new.raw.get("uniqueItems") is True and old.raw.get("uniqueItems") is not True:
            yield _Difference("UNIQUE_ITEMS_ADDED", ("uniqueItems",), "the items must be unique")

    def _removed_item(self, was: JsonSchema, new: JsonSchema, items: _Items) -> Iterator[_Difference]:
        # Here, Confluent's classes let a schema for unevaluated items accept any.
        if items.are_open(new) or (items.rest is True and _object(new, _unevaluated(new, "Items"))):
            return
        covering = items.covering(new)
        if covering is not None:
            if differences := self.compare(was, covering):
                yield from differences
                text = "the item was removed, and further items have another schema"
                yield _Difference("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", (), text)
        elif was.kind != "false":
            text = "the item was removed, and the reader accepts no further items"
            yield _Difference("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", (), text)

    def _added_item(self, old: JsonSchema, items: _Items, added: JsonSchema) -> Iterator[_Difference]:
        if items.are_open(old):
            if added.kind != "empty":
                text = "the item was added, and the writer accepts any value for it"
                yield _Difference("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", (), text)
            return
        covering = items.covering(old)
        if covering is not None and (differences := self.compare(covering, added)):
            yield from differences
            text = "the item was added, and differs from the writer's further items"
            yield _Difference("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", (), text)

    def _further(
        self, old: JsonSchema, new: JsonSchema, key: str, rule: str, before: Any = None, after: Any = None
    ) -> Iterator[_Difference]:
        """Differences in the properties or items that have no schema of their own."""
        before = old.raw.get(key, True) if before is None else before
        after = new.raw.get(key, True) if after is None else after
        if before is not False and after is False:
            yield _Difference(f"{rule}_REMOVED", (key,), "the reader accepts no others")
        elif before is True and isinstance(after, dict):
            yield _Difference(f"{rule}_NARROWED", (key,), "the reader has a schema for others")
        elif isinstance(before, dict) and isinstance(after, dict):
            yield from self.compare(old.sub(before), new.sub(after), key)

    def _unevaluated(self, old: JsonSchema, new: JsonSchema, key: str, rule: str) -> Iterator[_Difference]:
        """Differences in the properties or items that no other keyword reads; only newer drafts have them."""
        before, after = (one.part(key) if one.is_newer else None for one in (old, new))
        if after is None:
            return
        if after.kind == "false":
            if before is None or before.kind != "false":
                yield _Difference(f"{rule}_REMOVED", (key,), "the reader accepts no others")
        elif before is None or (before.kind == "empty" and after.kind != "empty"):
            yield _Difference(f"{rule}_NARROWED", (key,), "the reader has a schema for others")
        else:
            yield from self.compare(before, after, key)


class _Items(NamedTuple):
    """The constraints of an array on its items."""

    first: list[Any]
    """The schemas of the first items, if they have schemas of their own."""
    each: JsonSchema | None
    """The schema of all items, if they have one in common."""
    rest: Any
    """True, False or the schema of the items after the first ones."""

    def are_open(self, array: JsonSchema) -> bool:
        return self.rest is True and _unevaluated(array, "Items") in (True, {})

    def covering(self, array: JsonSchema) -> JsonSchema | None:
        """The schema of the items without their own schema."""
        return _object(array, self.rest) or _object(array, _unevaluated(array, "Items"))


def _items(array: JsonSchema) -> _Items:
    raw = array.raw
    first, items = raw.get("prefixItems"), raw.get("items", True)
    if isinstance(items, list):
        return _Items(items, None, raw.get("additionalItems", True))
    if not array.is_newer:
        return _Items([], array.part("items"), raw.get("additionalItems", True))
    if isinstance(first, list) and first:
        return _Items(first, None, items)
    if isinstance(items, bool):
        return _Items([], None, items)
    return _Items([], array.part("items"), True)


def _unevaluated(of: JsonSchema, what: str) -> Any:
    return of.raw.get(f"unevaluated{what}", True) if of.is_newer else True


def _object(of: JsonSchema, value: Any) -> JsonSchema | None:
    """The schema of a value that is an object; None for true and false."""
    return of.sub(value) if isinstance(value, dict) else None


def _under(path: tuple[str, ...], differences: Iterable[_Difference]) -> list[_Difference]:
    return [difference._replace(path=(*path, *difference.path)) for difference in differences]


def _names(of: JsonSchema, key: str) -> set[str]:
    value = of.raw.get(key)
    return {one for one in value if isinstance(one, str)} if isinstance(value, list) else set()


def _has_default(raw: Any) -> bool:
    return isinstance(raw, dict) and "default" in raw


def _is_open(of: JsonSchema) -> bool:
    """True if an object accepts any property that it does not name."""
    is_open = not of.named_parts("patternProperties") and of.raw.get("additionalProperties", True) is True
    return is_open and _unevaluated(of, "Properties") in (True, {})


def _covering(of: JsonSchema, name: str) -> JsonSchema | None:
    """The schema of a property that an object does not name, from a pattern or for all others."""
    for pattern, schema in of.named_parts("patternProperties").items():
        if _matches(pattern, name):
            return of.sub(schema)
    further = of.raw.get("additionalProperties", True)
    return _object(of, _unevaluated(of, "Properties") if further is True else further)


def _matches(pattern: str, name: str) -> bool:
    # RE2, since a pattern may be made to take Python's `re` forever.
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return bool(pc.match_substring_regex(pa.scalar(name, pa.string()), pattern).as_py())
    except (pa.ArrowInvalid, UnicodeEncodeError):
        raise InvalidSchemaError(f"patternProperties: {_quoted(pattern)} cannot be matched") from None


def _strings(old: JsonSchema, new: JsonSchema) -> Iterator[_Difference]:
    yield from _limits(old, new, "maxLength", "MAX_LENGTH", upper=True)
    yield from _limits(old, new, "minLength", "MIN_LENGTH", upper=False)
    before, after = old.raw.get("pattern"), new.raw.get("pattern")
    if after is not None and before != after:
        rule = "PATTERN_ADDED" if before is None else "PATTERN_CHANGED"
        yield _Difference(rule, ("pattern",), f"the pattern is {_quoted(after)}")


def _numbers(old: JsonSchema, new: JsonSchema) -> Iterator[_Difference]:
    yield from _limits(old, new, "maximum", "MAXIMUM", upper=True)
    yield from _limits(old, new, "minimum", "MINIMUM", upper=False)
    yield from _limits(old, new, "exclusiveMaximum", "EXCLUSIVE_MAXIMUM", upper=True)
    yield from _limits(old, new, "exclusiveMinimum", "EXCLUSIVE_MINIMUM", upper=False)
    before, after = _number(old, "multipleOf"), _number(new, "multipleOf")
    if after is not None and before != after:
        path, text = ("multipleOf",), f"it must be a multiple of {after}"
        if before is None:
            yield _Difference("MULTIPLE_OF_ADDED", path, text)
        elif _divides(before, after):
            yield _Difference("MULTIPLE_OF_EXPANDED", path, text)
        elif not _divides(after, before):
            yield _Difference("MULTIPLE_OF_CHANGED", path, text)
    if new.integer and not old.integer:
        yield _Difference("TYPE_NARROWED", (), "number became integer")


def _enums(old: JsonSchema, new: JsonSchema) -> Iterator[_Difference]:
    before, after = ({canonical(value) for value in one.raw["enum"]} for one in (old, new))
    missing = before - after
    if missing:
        rule = "ENUM_ARRAY_NARROWED" if after < before else "ENUM_ARRAY_CHANGED"
        listed = ", ".join(sorted(one[:40] for one in missing)[:10])
        yield _Difference(rule, ("enum",), f"the reader lacks the values {listed}")


def _constants(old: JsonSchema, new: JsonSchema) -> Iterator[_Difference]:
    if canonical(old.raw["const"]) != canonical(new.raw["const"]):
        yield _Difference("ENUM_ARRAY_CHANGED", ("const",), f"the value is {_quoted(new.raw['const'])}")


def _limits(old: JsonSchema, new: JsonSchema, key: str, rule: str, *, upper: bool) -> Iterator[_Difference]:
    """A limit that was added, or became tighter."""
    before, after = _number(old, key), _number(new, key)
    if after is None or before == after:
        return
    if before is None:
        yield _Difference(f"{rule}_ADDED", (key,), f"{key} is {after}, and was not limited")
    elif (after < before) == upper:
        change = "DECREASED" if upper else "INCREASED"
        yield _Difference(f"{rule}_{change}", (key,), f"{key} is {after}, and was {before}")


def _number(of: JsonSchema, key: str) -> int | float | None:
    value = of.raw.get(key)
    if key == "minContains" and value is None and of.is_newer and "contains" in of.raw:
        return 1
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _divides(divisor: float, number: float) -> bool:
    try:
        return Fraction(str(number)) % Fraction(str(divisor)) == 0
    except (ValueError, ZeroDivisionError):
        return False


def _matched(edges: list[list[int]]) -> int:
    """The number of left sides in a maximum matching, where each has its own right side."""
    taken: dict[int, int] = {}

    def place(left: int, tried: set[int]) -> bool:
        for right in edges[left]:
            if right not in tried:
                tried.add(right)
                if right not in taken or place(taken[right], tried):
                    taken[right] = left
                    return True
        return False

    return sum(place(left, set()) for left in range(len(edges)))


def _shown(of: JsonSchema) -> str:
    return of.criterion or ("integer" if of.integer else of.kind)


def _quoted(value: Any) -> str:
    return canonical(value)[:_SHOWN]
