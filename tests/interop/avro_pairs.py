"""Pairs of Avro schemas, the reader's first, that cover every rule of compatibility. Java has the verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

Pair = tuple[str, str, str]
"""A name, the reader's schema and the writer's."""


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    """A record; a field is its name and type, or an object."""
    made = [one if isinstance(one, dict) else {"name": one[0], "type": one[1]} for one in fields]
    return {"type": "record", "name": name, "fields": made, **more}


def field(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


def enum(*symbols: str, name: str = "E", **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size: int, name: str = "F", **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def map_(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}


PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
TYPES: list[Any] = [
    *PRIMITIVES,
    array("int"),
    map_("int"),
    record(("a", "int")),
    enum("A", "B"),
    fixed(4),
    ["null", "int"],
    ["long", "string"],
    [],
]
_SYMBOLS = enum("A", "B")
_INNER = record(("x", "int"), field("y", "int", default=3), name="I")
DEFAULTS: list[tuple[Any, list[Any], list[Any]]] = [
    ("null", [None], [0, "", {}, []]),
    ("boolean", [True, False], ["true", 1, None]),
    ("int", [0, -(2**31), 2**31 - 1], [1.5, 1.0, 2**31, -(2**31) - 1, 3_000_000_000, "5", None, True]),
    ("long", [0, 2**31, -(2**63), 2**63 - 1], [1e10, 2**63, -(2**63) - 1, "5", 2**70]),
    ("float", [0, 1.5, "1.5", " -2e3 ", "NaN", "-Infinity", "1d"], ["x", "", None, True, "1_0", "inf"]),
    ("double", [0, 1e300, 2**70, "1.5f"], ["x", [], "0x"]),
    ("string", ["", "x"], [None, 1, True, []]),
    ("bytes", ["", "\u00ff"], [None, 1, [1]]),
    (fixed(2), ["ab"], [None, 1]),
    (_SYMBOLS, ["A", "B"], [None, 0, ["A"]]),
    (["null", "int"], [None, 5], ["x", 1.5, True]),
    (["int", "null"], [5, None], ["x", {}]),
    (["string", _SYMBOLS], ["x", "A"], [None]),
    (array("int"), [[], [1, 2]], [{}, None, "x", [None], ["1"], 1]),
    (array("double"), [[1, 1.5]], [["1.5"]]),
    (array(array("string")), [[[], ["a"]]], [["a"], [[1]]]),
    (map_("int"), [{}, {"a": 1}], [[], None, {"a": "x"}, {"a": None}]),
    (
        _INNER,
        [{"x": 1}, {"x": 1, "y": 2}, {"x": 1, "z": 0}],
        [{}, {"y": 1}, {"x": "1"}, None, [], {"x": 1, "y": None}],
    ),
    (["null", _INNER], [None, {"x": 1}], [{}]),
    (array(_INNER), [[{"x": 1}]], [[{}]]),
    (record(name="Empty"), [{}], [None, []]),
]
"""Types with defaults that Java takes, and defaults that it refuses."""
LIST = record(("value", "int"), ("next", ["null", "R"]))
TREE = record(("value", "long"), ("left", ["null", "R"]), ("right", ["null", "R"]))

RULES: list[tuple[str, Any, Any]] = [
    # records
    ("a field less", record(("a", "int")), record(("a", "int"), ("b", "int"))),
    ("a field more", record(("a", "int"), ("b", "int")), record(("a", "int"))),
    ("a field more with a default", record(("a", "int"), field("b", "int", default=0)), record(("a", "int"))),
    ("a default of null", record(field("b", ["null", "int"], default=None)), record(("a", "int"))),
    ("a nullable field without a default", record(("b", ["null", "int"])), record(("a", "int"))),
    ("no fields", record(), record(("a", "int"))),
    ("no fields written", record(("a", "int")), record()),
    ("fields in another order", record(("a", "int"), ("b", "string")), record(("b", "string"), ("a", "int"))),
    ("a renamed field", record(("b", "int")), record(("a", "int"))),
    ("a renamed field with an alias", record(field("b", "int", aliases=["a"])), record(("a", "int"))),
    ("two aliases, one known", record(field("c", "int", aliases=["a", "b"])), record(("b", "int"))),
    ("an alias of another type", record(field("b", "int", aliases=["a"])), record(("a", "string"))),
    (
        "an alias that is another field",
        record(field("b", "int", aliases=["a"])),
        record(("a", "int"), ("b", "int")),
    ),
    ("the writer's alias does not count", record(("b", "int")), record(field("a", "int", aliases=["b"]))),
    ("a promoted field", record(("a", "long")), record(("a", "int"))),
    ("a demoted field", record(("a", "int")), record(("a", "long"))),
    ("two wrong fields", record(("a", "int"), ("b", "int")), record(("a", "string"), ("c", "int"))),
    ("another name", record(("a", "int"), name="S"), record(("a", "int"))),
    ("another name with an alias", record(("a", "int"), name="S", aliases=["R"]), record(("a", "int"))),
    ("another namespace", record(("a", "int"), namespace="x"), record(("a", "int"), namespace="y")),
    ("a namespace in the name", record(("a", "int"), name="x.R"), record(("a", "int"), namespace="x")),
    (
        "an alias with a dot in a namespace",
        record(("a", "int"), name="S", namespace="x", aliases=[".R"]),
        record(("a", "int")),
    ),
    (
        "an alias with a dot",
        record(("a", "int"), name="S", aliases=[".R"]),
        record(("a", "int")),
    ),
    (
        "an alias with two dots",
        record(("a", "int"), name="S", aliases=[".x.R"]),
        record(("a", "int"), name="x.R"),
    ),
    (
        "an enum's alias with a dot",
        enum("A", name="x.S", aliases=[".R"]),
        enum("A", name="R"),
    ),
    (
        "an alias in a namespace",
        record(("a", "int"), name="S", namespace="x", aliases=["R"]),
        record(("a", "int"), namespace="x"),
    ),
    (
        "an alias without its namespace",
        record(("a", "int"), name="S", aliases=["R"]),
        record(("a", "int"), namespace="x"),
    ),
    (
        "an alias with a namespace",
        record(("a", "int"), name="S", aliases=["x.R"]),
        record(("a", "int"), namespace="x"),
    ),
    ("another name and a field more", record(("a", "int"), name="S"), record()),
    ("nested", record(("r", record(("a", "int"), name="I"))), record(("r", record(name="I")))),
    (
        "nested with a default",
        record(("r", record(field("a", "int", default=1), name="I"))),
        record(("r", record(name="I"))),
    ),
    ("a nested name", record(("r", record(name="J"))), record(("r", record(name="I")))),
    (
        "an enum with a default as a new field",
        record(("e", enum("A", "B", default="A"))),
        record(("a", "int")),
    ),
    ("an enum without a default as a new field", record(("e", enum("A"))), record(("a", "int"))),
    (
        "a type used twice",
        record(("a", fixed(4)), ("b", "F")),
        record(("a", fixed(4)), ("b", "F")),
    ),
    (
        "a type used twice, wrong",
        record(("a", fixed(4)), ("b", "F")),
        record(("a", fixed(8)), ("b", "F")),
    ),
    # recursion
    ("recursive", LIST, LIST),
    ("recursive, promoted", record(("value", "long"), ("next", ["null", "R"])), LIST),
    ("recursive, demoted", LIST, record(("value", "long"), ("next", ["null", "R"]))),
    ("a tree reads a list", TREE, LIST),
    ("a list reads a tree", LIST, TREE),
    ("recursive through an array", record(("all", array("R"))), record(("all", array("R")))),
    ("recursive through a map", record(("all", map_("R")), ("a", "int")), record(("all", map_("R")))),
    # enums
    ("symbols more", enum("A", "B", "C"), enum("A", "B")),
    ("symbols less", enum("A"), enum("A", "B", "C")),
    ("symbols less with a default", enum("A", default="A"), enum("A", "B")),
    ("the writer's default", enum("A"), enum("A", "B", default="A")),
    ("symbols in another order", enum("B", "A"), enum("A", "B")),
    ("an enum of another name", enum("A", name="X"), enum("A")),
    ("an enum of another name with an alias", enum("A", name="X", aliases=["E"]), enum("A")),
    ("an enum of another name and symbols less", enum("A", name="X"), enum("A", "B")),
    ("an enum in another namespace", enum("A", namespace="x"), enum("A", namespace="y")),
    # fixed
    ("another size", fixed(4), fixed(8)),
    ("a fixed of another name", fixed(4, name="G"), fixed(4)),
    ("a fixed of another name with an alias", fixed(4, name="G", aliases=["F"]), fixed(4)),
    ("a fixed of another name and size", fixed(4, name="G"), fixed(8)),
    # collections
    ("items promoted", array("long"), array("int")),
    ("items demoted", array("int"), array("long")),
    ("values promoted", map_("double"), map_("float")),
    ("values demoted", map_("float"), map_("double")),
    ("items of items", array(array("int")), array(array("string"))),
    ("items nullable", array(["null", "int"]), array("int")),
    ("items no longer nullable", array("int"), array(["null", "int"])),
    ("values in a field", record(("m", map_("int"))), record(("m", map_("string")))),
    ("records in an array", array(record(("a", "int"))), array(record())),
    # unions
    ("a branch more", ["null", "int", "string"], ["null", "int"]),
    ("a branch less", ["null", "int"], ["null", "int", "string"]),
    ("branches in another order", ["int", "null"], ["null", "int"]),
    ("a branch promoted", ["null", "long"], ["null", "int"]),
    ("a branch demoted", ["null", "int"], ["null", "long"]),
    ("a union reads its branch", ["null", "int"], "int"),
    ("a union reads a promoted branch", ["null", "double"], "int"),
    ("a union does not read", ["null", "int"], "string"),
    ("a branch reads a union", "int", ["int"]),
    ("a branch reads a union of promotions", "double", ["int", "long", "float"]),
    ("a branch reads a part of a union", "int", ["int", "string"]),
    ("bytes read a union", "bytes", ["bytes", "string"]),
    ("an empty union reads nothing", [], "int"),
    ("an empty union is read", "int", []),
    ("empty unions", [], []),
    ("a record in a union", ["null", record(("a", "int"))], record(("a", "int"))),
    ("a record of another name in a union", ["null", record(("a", "int"), name="S")], record(("a", "int"))),
    (
        "a record of another name in a union with an alias",
        ["null", record(("a", "int"), name="S", aliases=["R"])],
        record(("a", "int")),
    ),
    ("a record more in a union", [record(name="A"), record(name="B")], [record(name="A")]),
    ("a record less in a union", [record(name="A")], [record(name="A"), record(name="B")]),
    (
        "a field more in a union's record",
        ["null", record(("a", "int"))],
        ["null", record()],
    ),
    ("an enum in a union", ["null", enum("A", "B")], ["null", enum("A")]),
    ("an enum in a union, symbols less", ["null", enum("A")], ["null", enum("A", "B")]),
    ("a fixed in a union", ["null", fixed(4)], ["null", fixed(8)]),
    ("a nullable field", record(("a", ["null", "int"])), record(("a", "int"))),
    ("no longer a nullable field", record(("a", "int")), record(("a", ["null", "int"]))),
    ("a union in a field, demoted", record(("a", ["null", "int"])), record(("a", ["null", "string"]))),
    ("an array in a union", ["null", array("long")], ["null", array("int")]),
    ("an array in a union, demoted", ["null", array("int")], ["null", array("long")]),
    ("a map for a record", map_("int"), record(("a", "int"))),
    # what does not count
    ("a logical type more", {"type": "int", "logicalType": "date"}, "int"),
    (
        "another logical type",
        {"type": "long", "logicalType": "timestamp-millis"},
        {"type": "long", "logicalType": "timestamp-micros"},
    ),
    (
        "another precision",
        {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2},
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1},
    ),
    ("documentation", record(("a", "int"), doc="new"), record(("a", "int"), doc="old")),
    ("properties", {"type": "string", "avro.java.string": "String"}, "string"),
    ("a sort order", record(field("a", "int", order="descending")), record(("a", "int"))),
    ("a type in an object", {"type": "int"}, "int"),
    ("an error type", record(("a", "int")) | {"type": "error"}, record(("a", "int"))),
]


def pairs() -> Iterator[Pair]:
    for reader, writer in product(TYPES, TYPES):
        yield f"{json.dumps(reader)} reads {json.dumps(writer)}", json.dumps(reader), json.dumps(writer)
    for name, reader, writer in RULES:
        yield name, json.dumps(reader), json.dumps(writer)
