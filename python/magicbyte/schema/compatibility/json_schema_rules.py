"""The rules that make JSON Schemas incompatible, by Confluent's names (`Difference.Type`), and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from magicbyte.schema.compatibility.incompatibility import Remedies

__all__ = ["LENIENT", "REMEDIES"]

LENIENT = frozenset(
    {
        "ADDITIONAL_PROPERTIES_NARROWED",
        "ADDITIONAL_PROPERTIES_REMOVED",
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    }
)
"""The rules that do not count as incompatibilities for a subject with the policy `LENIENT`."""

_LIMITS = {
    "_ADDED": ("leave the limit out", "keep the limit, which older readers enforce"),
    "_DECREASED": ("do not lower the limit", "do not raise the limit, which older readers enforce"),
    "_INCREASED": ("do not raise the limit", "do not lower the limit, which older readers enforce"),
}
_UPPER = ("MAX_LENGTH", "MAXIMUM", "EXCLUSIVE_MAXIMUM", "MAX_PROPERTIES", "MAX_ITEMS", "MAX_CONTAINS")
_LOWER = ("MIN_LENGTH", "MINIMUM", "EXCLUSIVE_MINIMUM", "MIN_PROPERTIES", "MIN_ITEMS", "MIN_CONTAINS")
_FURTHER = {
    "_REMOVED": ("allow further ones", "leave out true, since older readers accept no others"),
    "_NARROWED": ("leave out the schema for further ones", "keep the schema for further ones"),
}


def _of_limits() -> Iterator[tuple[str, tuple[str, str]]]:
    for rules, change in ((_UPPER, "_DECREASED"), (_LOWER, "_INCREASED")):
        for rule in rules:
            yield f"{rule}_ADDED", _LIMITS["_ADDED"]
            yield f"{rule}{change}", _LIMITS[change]


def _of_further() -> Iterator[tuple[str, tuple[str, str]]]:
    for what in ("ADDITIONAL", "UNEVALUATED"):
        for parts in ("PROPERTIES", "ITEMS"):
            for change, remedies in _FURTHER.items():
                yield f"{what}_{parts}{change}", remedies


def _both(text: str) -> tuple[str, str]:
    return text, text


_TO_OPEN = (
    'close the object from its first version on ("additionalProperties": false), to add properties later',
    "keep the property, or close the object from its first version on",
)
_KEEP_TYPE = _both("keep the type, or add a property of another name")

REMEDIES: Remedies = {
    **dict(_of_limits()),
    **dict(_of_further()),
    "SCHEMA_ADDED": ("leave the schema out", "keep the schema, which older readers enforce"),
    "TYPE_CHANGED": _KEEP_TYPE,
    "TYPE_NARROWED": ("keep number", "keep integer, which older readers expect"),
    "PATTERN_ADDED": ("leave the pattern out", "keep the pattern, which older readers enforce"),
    "PATTERN_CHANGED": _both("keep the pattern"),
    "MULTIPLE_OF_ADDED": ("leave multipleOf out", "keep multipleOf, which older readers enforce"),
    "MULTIPLE_OF_EXPANDED": _both("keep multipleOf"),
    "MULTIPLE_OF_CHANGED": _both("keep multipleOf"),
    "REQUIRED_ATTRIBUTE_ADDED": (
        "leave the property optional, or give it a default",
        "keep the property required, as older readers demand",
    ),
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": _TO_OPEN,
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL": _TO_OPEN,
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": _TO_OPEN,
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": (
        "make the property optional, or give it a default",
        "keep the property, which older readers demand",
    ),
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _both(
        "give the property the schema that further properties have"
    ),
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _both(
        "keep the property, or let further properties have its schema"
    ),
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": (
        "keep the property",
        "add no property until all readers know it; they accept no others",
    ),
    "DEPENDENCY_ARRAY_ADDED": ("leave the dependency out", "keep the dependency"),
    "DEPENDENCY_ARRAY_EXTENDED": ("demand no more properties", "demand no fewer properties"),
    "DEPENDENCY_ARRAY_CHANGED": _both("keep the dependency"),
    "DEPENDENCY_SCHEMA_ADDED": ("leave the dependency out", "keep the dependency"),
    "UNIQUE_ITEMS_ADDED": ("leave uniqueItems out", "keep uniqueItems, which older readers enforce"),
    "ITEM_ADDED_TO_OPEN_CONTENT_MODEL": _both("keep the number of items, or close the array from the start"),
    "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _both(
        "give the item the schema that further items have"
    ),
    "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _both(
        "keep the item, or let further items have its schema"
    ),
    "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL": (
        "keep the item",
        "add no item until all readers know it; they accept no others",
    ),
    "ENUM_ARRAY_NARROWED": ("keep all values", "add no values until all readers know them"),
    "ENUM_ARRAY_CHANGED": _both("keep the values, and add only where the readers allow more"),
    "COMBINED_TYPE_CHANGED": _both("keep the kind of combination; only anyOf may follow another one"),
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED": _both("keep each branch, or change it to one that accepts more"),
    "PRODUCT_TYPE_EXTENDED": ("add no branch to allOf", "remove no branch from allOf"),
    "SUM_TYPE_NARROWED": ("remove no branch", "add no branch until all readers know it"),
    "NOT_TYPE_EXTENDED": ("exclude no more than before", "exclude no less than before"),
}
"""By rule: what to do to the new schema if it is the reader, and if it is the writer."""
