"""Pairs of JSON Schemas: the writer's, the reader's, and the rules of Confluent's that the reader breaks."""

from __future__ import annotations

from typing import Any, NamedTuple


class Pair(NamedTuple):
    name: str
    old: Any
    new: Any
    rules: set[str]
    lenient: bool | None = None
    """Whether it is compatible by the lenient rules; None if as by the strict ones."""
    apicurio: bool | int | None = None
    """What Apicurio says where it differs from Confluent's rules; a number is the status of an error."""


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def opened(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def covered(schema: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": schema}


def tuple_(*items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": list(items), **more}


STRING, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}


NEWER = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def of(keyword: str, *branches: Any) -> dict[str, Any]:
    return {keyword: list(branches)}


def limits() -> list[Pair]:
    """Each limit: added, removed, tighter, looser."""
    found = []
    for type_, key, rule in (
        ("string", "maxLength", "MAX_LENGTH"),
        ("string", "minLength", "MIN_LENGTH"),
        ("number", "maximum", "MAXIMUM"),
        ("number", "minimum", "MINIMUM"),
        ("number", "exclusiveMaximum", "EXCLUSIVE_MAXIMUM"),
        ("number", "exclusiveMinimum", "EXCLUSIVE_MINIMUM"),
        ("object", "maxProperties", "MAX_PROPERTIES"),
        ("object", "minProperties", "MIN_PROPERTIES"),
        ("array", "maxItems", "MAX_ITEMS"),
        ("array", "minItems", "MIN_ITEMS"),
        ("array", "maxContains", "MAX_CONTAINS"),
        ("array", "minContains", "MIN_CONTAINS"),
    ):
        plain, low, high = ({"type": type_} | more for more in ({}, {key: 5}, {key: 9}))
        upper = rule.startswith(("MAX", "EXCLUSIVE_MAX"))
        # Apicurio does not know these.
        ignored = True if key.endswith("Contains") else None
        found += [
            Pair(f"{key} added", plain, low, {f"{rule}_ADDED"}, apicurio=ignored),
            Pair(f"{key} removed", low, plain, set()),
            Pair(f"{key} lower", high, low, {f"{rule}_DECREASED"} if upper else set(), apicurio=ignored),
            Pair(f"{key} higher", low, high, set() if upper else {f"{rule}_INCREASED"}, apicurio=ignored),
        ]
    return found


PAIRS = [
    *limits(),
    # types
    Pair("the same", STRING, STRING, set()),
    Pair("another type", STRING, INTEGER, {"TYPE_CHANGED"}),
    Pair("integer to number", INTEGER, NUMBER, set()),
    Pair("number to integer", NUMBER, INTEGER, {"TYPE_NARROWED"}),
    Pair("a type to any", STRING, {}, set()),
    Pair("any to a type", {}, STRING, {"TYPE_CHANGED"}),
    Pair("true to any", opened(a=True), opened(a={}), set()),
    Pair("false to a type", opened(a=False), opened(a=STRING), set()),
    Pair("a type to false", opened(a=STRING), opened(a=False), {"TYPE_CHANGED"}),
    Pair("null to boolean", {"type": "null"}, {"type": "boolean"}, {"TYPE_CHANGED"}),
    Pair("a title", STRING | {"title": "x"}, STRING | {"title": "y", "description": "z"}, set()),
    Pair("a type more", STRING, {"type": ["string", "null"]}, set(), apicurio=False),
    Pair("a type less", {"type": ["string", "null"]}, STRING, {"TYPE_CHANGED"}),
    Pair("types in another order", {"type": ["string", "null"]}, {"type": ["null", "string"]}, set()),
    Pair(
        "three types to two",
        {"type": ["string", "null", "integer"]},
        {"type": ["null", "string"]},
        {"SUM_TYPE_NARROWED"},
    ),
    # strings and numbers
    Pair("a pattern added", STRING, STRING | {"pattern": "a"}, {"PATTERN_ADDED"}),
    Pair("a pattern removed", STRING | {"pattern": "a"}, STRING, set()),
    Pair("another pattern", STRING | {"pattern": "a"}, STRING | {"pattern": "b"}, {"PATTERN_CHANGED"}),
    Pair("multipleOf added", INTEGER, INTEGER | {"multipleOf": 2}, {"MULTIPLE_OF_ADDED"}),
    Pair("multipleOf removed", INTEGER | {"multipleOf": 2}, INTEGER, set()),
    Pair(
        "multipleOf a multiple",
        INTEGER | {"multipleOf": 2},
        INTEGER | {"multipleOf": 4},
        {"MULTIPLE_OF_EXPANDED"},
    ),
    Pair("multipleOf a divisor", INTEGER | {"multipleOf": 4}, INTEGER | {"multipleOf": 2}, set()),
    Pair(
        "multipleOf another",
        INTEGER | {"multipleOf": 2},
        INTEGER | {"multipleOf": 3},
        {"MULTIPLE_OF_CHANGED"},
    ),
    Pair(
        "multipleOf a fraction that is no divisor",
        NUMBER | {"multipleOf": 4.5},
        NUMBER | {"multipleOf": 2.5},
        {"MULTIPLE_OF_CHANGED"},
    ),
    Pair("multipleOf a fraction of it", NUMBER | {"multipleOf": 0.5}, NUMBER | {"multipleOf": 0.1}, set()),
    # objects: content models
    Pair(
        "an optional property added to an open object",
        opened(a=STRING),
        opened(a=STRING, b=STRING),
        {"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"},
        lenient=True,
    ),
    Pair(
        "a required property added to an open object",
        opened(a=STRING),
        opened(a=STRING, b=STRING) | {"required": ["b"]},
        {"REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"},
    ),
    Pair(
        "a required property with a default added to an open object",
        opened(a=STRING),
        opened(a=STRING, b=STRING | {"default": ""}) | {"required": ["b"]},
        {"REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL"},
        lenient=True,
    ),
    Pair(
        "any property added to an open object",
        opened(a=STRING),
        opened(a=STRING, b={}),
        set(),
        apicurio=False,
    ),
    Pair("a property removed from an open object", opened(a=STRING, b=STRING), opened(a=STRING), set()),
    Pair(
        "an optional property added to a closed object", closed(a=STRING), closed(a=STRING, b=STRING), set()
    ),
    Pair(
        "a required property added to a closed object",
        closed(a=STRING),
        closed(a=STRING, b=STRING) | {"required": ["b"]},
        {"REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"},
    ),
    Pair(
        "a required property with a default added to a closed object",
        closed(a=STRING),
        closed(a=STRING, b=STRING | {"default": ""}) | {"required": ["b"]},
        set(),
        apicurio=False,
    ),
    Pair(
        "a property removed from a closed object",
        closed(a=STRING, b=STRING),
        closed(a=STRING),
        {"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"},
        lenient=True,
    ),
    Pair("a false property removed from a closed object", closed(b=False), closed(), set(), apicurio=False),
    Pair("a covered property added", covered(STRING), covered(STRING, b=STRING), set()),
    Pair(
        "a property added that is not covered",
        covered(STRING),
        covered(STRING, b=INTEGER),
        {"TYPE_CHANGED", "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"},
        lenient=False,
    ),
    Pair("a covered property removed", covered(STRING, b=STRING), covered(STRING), set()),
    Pair(
        "a property removed that is not covered",
        covered(STRING, b=INTEGER),
        covered(STRING),
        {"TYPE_CHANGED", "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"},
        lenient=False,
    ),
    Pair(
        "a property of a pattern removed",
        closed(x_a=STRING) | {"patternProperties": {"^x_": STRING}},
        closed() | {"patternProperties": {"^x_": STRING}},
        set(),
        apicurio=False,
    ),
    Pair(
        "a property of another pattern removed",
        closed(y_a=STRING) | {"patternProperties": {"^x_": STRING}},
        closed() | {"patternProperties": {"^x_": STRING}},
        {"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"},
        lenient=True,
    ),
    Pair("opened", closed(a=STRING), opened(a=STRING), set()),
    Pair("closed", opened(a=STRING), closed(a=STRING), {"ADDITIONAL_PROPERTIES_REMOVED"}, lenient=True),
    Pair(
        "further properties narrowed",
        opened(a=STRING),
        covered(STRING, a=STRING),
        {"ADDITIONAL_PROPERTIES_NARROWED"},
        lenient=True,
    ),
    Pair("further properties extended", covered(STRING, a=STRING), opened(a=STRING), set()),
    Pair("further properties of another type", covered(STRING), covered(INTEGER), {"TYPE_CHANGED"}),
    Pair("further properties of a wider type", covered(INTEGER), covered(NUMBER), set()),
    # objects: required, dependencies
    Pair("required", opened(a=STRING), opened(a=STRING) | {"required": ["a"]}, {"REQUIRED_ATTRIBUTE_ADDED"}),
    Pair(
        "required with a default",
        opened(a=STRING),
        opened(a=STRING | {"default": ""}) | {"required": ["a"]},
        set(),
        apicurio=False,
    ),
    Pair("no longer required", opened(a=STRING) | {"required": ["a"]}, opened(a=STRING), set()),
    Pair("a property of another type", opened(a=STRING), opened(a=INTEGER), {"TYPE_CHANGED"}),
    Pair("a nested property", opened(o=opened(a=STRING)), opened(o=opened(a=NUMBER)), {"TYPE_CHANGED"}),
    Pair(
        "a dependency",
        opened(a={}, b={}),
        opened(a={}, b={}) | {"dependencies": {"a": ["b"]}},
        {"DEPENDENCY_ARRAY_ADDED"},
    ),
    Pair(
        "a dependency less",
        opened(a={}, b={}) | {"dependencies": {"a": ["b"]}},
        opened(a={}, b={}),
        set(),
    ),
    Pair(
        "a longer dependency",
        opened(a={}, b={}, c={}) | {"dependencies": {"a": ["b"]}},
        opened(a={}, b={}, c={}) | {"dependencies": {"a": ["b", "c"]}},
        {"DEPENDENCY_ARRAY_EXTENDED"},
    ),
    Pair(
        "a shorter dependency",
        opened(a={}, b={}, c={}) | {"dependencies": {"a": ["b", "c"]}},
        opened(a={}, b={}, c={}) | {"dependencies": {"a": ["b"]}},
        set(),
    ),
    Pair(
        "another dependency",
        opened(a={}, b={}, c={}) | {"dependencies": {"a": ["b"]}},
        opened(a={}, b={}, c={}) | {"dependencies": {"a": ["c"]}},
        {"DEPENDENCY_ARRAY_CHANGED"},
    ),
    Pair(
        "a dependency on a schema",
        opened(a={}),
        opened(a={}) | {"dependencies": {"a": closed()}},
        {"DEPENDENCY_SCHEMA_ADDED"},
    ),
    Pair(
        "a dependency on a narrower schema",
        opened(a={}) | {"dependencies": {"a": opened()}},
        opened(a={}) | {"dependencies": {"a": closed()}},
        {"ADDITIONAL_PROPERTIES_REMOVED"},
        lenient=True,
    ),
    # arrays
    Pair("items added", {"type": "array"}, {"type": "array", "items": STRING}, {"SCHEMA_ADDED"}),
    Pair("items removed", {"type": "array", "items": STRING}, {"type": "array"}, set()),
    Pair(
        "items of another type",
        {"type": "array", "items": STRING},
        {"type": "array", "items": INTEGER},
        {"TYPE_CHANGED"},
    ),
    Pair(
        "one schema instead of those of the first items",
        tuple_(INTEGER),
        {"type": "array", "items": INTEGER},
        {"SCHEMA_ADDED"},
    ),
    Pair(
        "schemas of the first items instead of one",
        {"type": "array", "items": INTEGER},
        tuple_(INTEGER),
        {"ITEM_ADDED_TO_OPEN_CONTENT_MODEL"},
    ),
    Pair("any items instead of none", {"items": False}, {"items": STRING}, set()),
    Pair("unique", {"type": "array"}, {"type": "array", "uniqueItems": True}, {"UNIQUE_ITEMS_ADDED"}),
    Pair("not unique", {"type": "array", "uniqueItems": True}, {"type": "array"}, set()),
    Pair(
        "an item added to an open array",
        tuple_(STRING),
        tuple_(STRING, STRING),
        {"ITEM_ADDED_TO_OPEN_CONTENT_MODEL"},
    ),
    Pair("any item added to an open array", tuple_(STRING), tuple_(STRING, {}), set(), apicurio=False),
    Pair("an item removed from an open array", tuple_(STRING, STRING), tuple_(STRING), set()),
    Pair(
        "an item added to a closed array",
        tuple_(STRING, additionalItems=False),
        tuple_(STRING, STRING, additionalItems=False),
        set(),
    ),
    Pair(
        "an item removed from a closed array",
        tuple_(STRING, STRING, additionalItems=False),
        tuple_(STRING, additionalItems=False),
        {"ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"},
    ),
    Pair(
        "a covered item added",
        tuple_(STRING, additionalItems=INTEGER),
        tuple_(STRING, INTEGER, additionalItems=INTEGER),
        set(),
    ),
    Pair(
        "an item added that is not covered",
        tuple_(STRING, additionalItems=INTEGER),
        tuple_(STRING, STRING, additionalItems=INTEGER),
        {"TYPE_CHANGED", "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"},
    ),
    Pair(
        "an item removed that is not covered",
        tuple_(STRING, STRING, additionalItems=INTEGER),
        tuple_(STRING, additionalItems=INTEGER),
        {"TYPE_CHANGED", "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"},
    ),
    Pair(
        "a covered item removed",
        tuple_(STRING, INTEGER, additionalItems=INTEGER),
        tuple_(STRING, additionalItems=INTEGER),
        set(),
    ),
    Pair(
        "an array closed", tuple_(STRING), tuple_(STRING, additionalItems=False), {"ADDITIONAL_ITEMS_REMOVED"}
    ),
    Pair("an array opened", tuple_(STRING, additionalItems=False), tuple_(STRING), set()),
    Pair(
        "further items narrowed",
        tuple_(STRING),
        tuple_(STRING, additionalItems=STRING),
        {"ADDITIONAL_ITEMS_NARROWED"},
    ),
    Pair("further items extended", tuple_(STRING, additionalItems=STRING), tuple_(STRING), set()),
    Pair(
        "unevaluated items narrowed",
        NEWER | {"type": "array"},
        NEWER | {"type": "array", "unevaluatedItems": STRING},
        {"UNEVALUATED_ITEMS_NARROWED"},
        apicurio=500,
    ),
    Pair(
        "unevaluated items removed",
        NEWER | {"type": "array"},
        NEWER | {"type": "array", "unevaluatedItems": False},
        {"UNEVALUATED_ITEMS_REMOVED"},
        apicurio=500,
    ),
    Pair(
        "unevaluated properties narrowed",
        NEWER | opened(),
        NEWER | opened() | {"unevaluatedProperties": STRING},
        {"UNEVALUATED_PROPERTIES_NARROWED"},
        apicurio=500,
    ),
    Pair(
        "unevaluated properties removed",
        NEWER | opened(),
        NEWER | opened() | {"unevaluatedProperties": False},
        {"UNEVALUATED_PROPERTIES_REMOVED"},
        apicurio=500,
    ),
    Pair(
        "any unevaluated items",
        NEWER | {"type": "array"},
        NEWER | {"type": "array", "unevaluatedItems": True},
        {"UNEVALUATED_ITEMS_NARROWED"},
        apicurio=500,
    ),
    Pair(
        "unevaluated items in an older draft",
        {"type": "array"},
        {"type": "array", "unevaluatedItems": False},
        set(),
    ),
    Pair(
        "a property added where none is unevaluated",
        NEWER | opened(a=STRING) | {"unevaluatedProperties": False},
        NEWER | opened(a=STRING, b=NUMBER) | {"unevaluatedProperties": False},
        set(),
        apicurio=500,
    ),
    Pair(
        "a property added that unevaluated ones cover",
        NEWER | opened(a=STRING) | {"unevaluatedProperties": INTEGER},
        NEWER | opened(a=STRING, b=NUMBER) | {"unevaluatedProperties": INTEGER},
        set(),
        apicurio=500,
    ),
    Pair(
        "a property removed where none is unevaluated",
        NEWER | opened(a=STRING, b=NUMBER) | {"unevaluatedProperties": False},
        NEWER | opened(a=STRING) | {"unevaluatedProperties": False},
        {"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"},
        lenient=True,
        apicurio=500,
    ),
    Pair(
        "a prefix item removed",
        NEWER | {"type": "array", "prefixItems": [STRING, NUMBER], "unevaluatedItems": STRING},
        NEWER | {"type": "array", "prefixItems": [STRING], "unevaluatedItems": STRING},
        set(),
        apicurio=500,
    ),
    Pair(
        "an item that the array contains",
        NEWER | {"type": "array"},
        NEWER | {"type": "array", "contains": NUMBER},
        {"MIN_CONTAINS_ADDED"},
        apicurio=500,
    ),
    Pair(
        "more items that the array contains",
        NEWER | {"type": "array", "contains": NUMBER},
        NEWER | {"type": "array", "contains": NUMBER, "minContains": 2},
        {"MIN_CONTAINS_INCREASED"},
        apicurio=500,
    ),
    Pair(
        "an item that the array contains, in an older draft",
        {"type": "array"},
        {"contains": NUMBER},
        set(),
        apicurio=False,
    ),
    Pair(
        "items instead of none",
        NEWER | {"items": False},
        NEWER | {"items": STRING},
        {"SCHEMA_ADDED"},
        apicurio=500,
    ),
    Pair(
        "a branch that is a type and an enum, to the type",
        NEWER | of("anyOf", STRING | {"enum": [True, None, "b"]}),
        NEWER | STRING,
        {"TYPE_CHANGED"},
        apicurio=500,
    ),
    Pair(
        "a branch that refers to a type and an enum, to the type",
        NEWER | of("anyOf", {"$ref": "#/$defs/a"}) | {"$defs": {"a": STRING | {"enum": ["b"]}}},
        NEWER | STRING,
        set(),
        apicurio=500,
    ),
    Pair(
        "a prefix item of another type",
        NEWER | {"type": "array", "prefixItems": [STRING]},
        NEWER | {"type": "array", "prefixItems": [INTEGER]},
        {"TYPE_CHANGED"},
        apicurio=500,
    ),
    Pair(
        "a reference with a limit beside it",
        NEWER | {"$ref": "#/$defs/a", "$defs": {"a": STRING}},
        NEWER | {"$ref": "#/$defs/a", "type": "string", "maxLength": 1, "$defs": {"a": STRING}},
        {"TYPE_CHANGED"},
        apicurio=500,
    ),
    # enums and constants
    Pair("values more", {"enum": ["a"]}, {"enum": ["a", "b"]}, set()),
    Pair("values less", {"enum": ["a", "b"]}, {"enum": ["a"]}, {"ENUM_ARRAY_NARROWED"}),
    Pair("other values", {"enum": ["a", "b"]}, {"enum": ["b", "c"]}, {"ENUM_ARRAY_CHANGED"}),
    Pair("values in another order", {"enum": ["a", "b"]}, {"enum": ["b", "a"]}, set()),
    Pair("another constant", {"const": "a"}, {"const": "b"}, {"ENUM_ARRAY_CHANGED"}),
    Pair("values more, with a type", STRING | {"enum": ["a"]}, STRING | {"enum": ["a", "b"]}, set()),
    Pair(
        "values less, with a type",
        STRING | {"enum": ["a", "b"]},
        STRING | {"enum": ["a"]},
        {"COMBINED_TYPE_SUBSCHEMAS_CHANGED"},
    ),
    # combinations
    Pair("a branch more", of("oneOf", STRING, NUMBER), of("oneOf", STRING, NUMBER, {"type": "null"}), set()),
    Pair(
        "a branch less",
        of("oneOf", STRING, NUMBER, {"type": "null"}),
        of("oneOf", STRING, NUMBER),
        {"SUM_TYPE_NARROWED"},
    ),
    Pair("branches in another order", of("anyOf", STRING, NUMBER), of("anyOf", NUMBER, STRING), set()),
    Pair(
        "a branch of another type",
        of("anyOf", STRING, NUMBER),
        of("anyOf", STRING, {"type": "null"}),
        {"COMBINED_TYPE_SUBSCHEMAS_CHANGED"},
    ),
    Pair("a wider branch", of("anyOf", STRING, INTEGER), of("anyOf", STRING, NUMBER), set()),
    Pair(
        "two branches need the same one",
        of("anyOf", INTEGER, INTEGER | {"minimum": 1}),
        of("anyOf", NUMBER, STRING),
        {"COMBINED_TYPE_SUBSCHEMAS_CHANGED"},
    ),
    Pair(
        "all of more",
        of("allOf", opened(a=STRING), opened(b=STRING)),
        of("allOf", opened(a=STRING), opened(b=STRING), opened(c=STRING)),
        {"PRODUCT_TYPE_EXTENDED"},
    ),
    Pair(
        "all of less",
        of("allOf", opened(a=STRING), opened(b=STRING), opened(c=STRING)),
        of("allOf", opened(a=STRING), opened(b=STRING)),
        set(),
    ),
    Pair("one of to any of", of("oneOf", STRING, NUMBER), of("anyOf", STRING, NUMBER), set()),
    Pair(
        "any of to one of",
        of("anyOf", STRING, NUMBER),
        of("oneOf", STRING, NUMBER),
        {"COMBINED_TYPE_CHANGED"},
    ),
    Pair(
        "any of to all of",
        of("anyOf", STRING, NUMBER),
        of("allOf", STRING, NUMBER),
        {"COMBINED_TYPE_CHANGED"},
    ),
    Pair("all of to any of them", of("allOf", NUMBER, STRING), of("anyOf", STRING), set()),
    Pair("all of to one of one", of("allOf", NUMBER, STRING), of("oneOf", STRING), set(), apicurio=False),
    Pair(
        "all of to one of two",
        of("allOf", NUMBER, STRING),
        of("oneOf", NUMBER, STRING),
        {"COMBINED_TYPE_CHANGED"},
    ),
    Pair(
        "any of two to all of one",
        of("anyOf", NUMBER, STRING),
        of("allOf", NUMBER),
        {"COMBINED_TYPE_CHANGED"},
    ),
    Pair("any of less", of("anyOf", NUMBER, STRING), of("anyOf", NUMBER), {"SUM_TYPE_NARROWED"}),
    Pair("one branch of any to one", of("anyOf", STRING), of("oneOf", STRING), set(), apicurio=False),
    Pair("a type to one of", STRING, of("oneOf", STRING, NUMBER), set(), apicurio=False),
    Pair("a type to one of others", STRING, of("oneOf", INTEGER, NUMBER), {"TYPE_CHANGED"}),
    Pair("a single branch to its type", of("oneOf", STRING), STRING, set(), apicurio=False),
    Pair("a type to a single branch", STRING, of("allOf", STRING), set(), apicurio=False),
    Pair(
        "all of to one of them",
        of("allOf", opened(a=STRING), opened(b=STRING)),
        opened(a=STRING),
        set(),
        apicurio=False,
    ),
    # exclusions
    Pair("not a wider one", {"not": INTEGER}, {"not": NUMBER}, {"NOT_TYPE_EXTENDED"}),
    Pair("not a narrower one", {"not": NUMBER}, {"not": INTEGER}, set()),
    # references
    Pair(
        "through a reference",
        {"definitions": {"x": STRING}, "type": "object", "properties": {"a": {"$ref": "#/definitions/x"}}},
        {"definitions": {"x": INTEGER}, "type": "object", "properties": {"a": {"$ref": "#/definitions/x"}}},
        {"TYPE_CHANGED"},
    ),
    Pair(
        "a reference to what was there",
        opened(a=STRING),
        {"definitions": {"x": STRING}, "type": "object", "properties": {"a": {"$ref": "#/definitions/x"}}},
        set(),
    ),
    Pair(
        "recursive",
        {"type": "object", "properties": {"a": STRING, "next": {"$ref": "#"}}},
        {"type": "object", "properties": {"a": STRING, "next": {"$ref": "#"}}},
        set(),
    ),
    Pair(
        "recursive, changed",
        {"type": "object", "properties": {"a": STRING, "next": {"$ref": "#"}}},
        {"type": "object", "properties": {"a": INTEGER, "next": {"$ref": "#"}}},
        {"TYPE_CHANGED"},
    ),
]
