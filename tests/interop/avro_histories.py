"""Random Avro schemas, what becomes of them over the years, and their values as our columns have them."""

from __future__ import annotations

import copy
import random
import struct
from typing import Any

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
PROMOTIONS = {"int": ["long", "float", "double"], "long": ["float", "double"], "float": ["double"]}
PROMOTIONS |= {"string": ["bytes"], "bytes": ["string"]}
NAMED = ("record", "enum", "fixed")


class Schemas:
    """Makes random schemas, whose named types have names of their own, and newer versions of them."""

    def __init__(self, seed: int, *, text: bool = True) -> None:
        """With `text=False`, schemas have no bytes: Java reads any as a string, which need not be UTF-8."""
        self._random = random.Random(seed)
        self._names = 0
        self._primitives = PRIMITIVES if text else [name for name in PRIMITIVES if name != "bytes"]

    def any(self, depth: int = 0, *, in_union: bool = False) -> Any:
        """A schema of any kind."""
        kinds = ["primitive", "primitive", "fixed", "enum"]
        if depth < 3:
            kinds += ["array", "map", "record", "record"] + ["union"] * (not in_union)
        match self._random.choice(kinds):
            case "fixed":
                return {"type": "fixed", "name": self._name(), "size": self._random.randrange(5)}
            case "enum":
                symbols = [f"S{number}" for number in range(self._random.randrange(1, 5))]
                return {"type": "enum", "name": self._name(), "symbols": symbols}
            case "array":
                return {"type": "array", "items": self.any(depth + 1)}
            case "map":
                return {"type": "map", "values": self.any(depth + 1)}
            case "record":
                return self.record(depth)
            case "union":
                return self._union(depth)
        return self._random.choice(self._primitives)

    def record(self, depth: int = 0) -> dict[str, Any]:
        """A record, sometimes without fields."""
        fields = [
            {"name": f"f{number}", "type": self.any(depth + 1)} for number in range(self._random.randrange(6))
        ]
        return {"type": "record", "name": self._name(), "fields": fields}

    def _union(self, depth: int) -> list[Any]:
        branches: dict[str, Any] = {}
        for _ in range(self._random.randrange(1, 5)):
            made = self.any(depth + 1, in_union=True)
            branches.setdefault(branch_name(made), made)
        return list(branches.values())

    def _name(self) -> str:
        self._names += 1
        return f"T{self._names}"

    def newer(self, schema: Any) -> Any:
        """A later version of a schema: most can read what the schema wrote, some can not."""
        made = copy.deepcopy(schema)
        for _ in range(self._random.randrange(1, 4)):
            made = self._changed(made, 0.3)
        return made

    def _changed(self, schema: Any, chance: float) -> Any:
        if isinstance(schema, list):
            return self._changed_union([self._changed(branch, chance) for branch in schema])
        if isinstance(schema, str):
            if self._random.random() < chance and schema in PROMOTIONS:
                return self._random.choice(PROMOTIONS[schema])
            return self._wrapped(schema)
        kind = schema["type"]
        if kind in NAMED and self._random.random() < chance:
            self._rename(schema)
        match kind:
            case "array":
                schema["items"] = self._changed(schema["items"], chance)
            case "map":
                schema["values"] = self._changed(schema["values"], chance)
            case "enum":
                self._change_symbols(schema)
            case "record":
                self._change_fields(schema, chance)
        return schema

    def _wrapped(self, schema: Any) -> Any:
        """Sometimes a union with the type in it."""
        if schema == "null" or self._random.random() > 0.15:
            return schema
        others = ["null", "double", {"type": "array", "items": "string"}]
        return self._changed_union(
            [schema, *(one for one in others if self._random.random() < 0.5 and one != schema)]
        )

    def _changed_union(self, branches: list[Any]) -> list[Any]:
        flat = [one for branch in branches for one in (branch if isinstance(branch, list) else [branch])]
        unique = {branch_name(one): one for one in flat}
        if self._random.random() < 0.2 and "null" not in unique:
            unique["null"] = "null"
        made = list(unique.values())
        if self._random.random() < 0.3:
            self._random.shuffle(made)
        return made

    def _rename(self, schema: dict[str, Any]) -> None:
        match self._random.randrange(9):
            case 0 | 1 | 2:
                # The namespace of what is in it changes, too.
                schema["namespace"] = self._random.choice(["a", "b.c"])
            case 3 | 4 | 5 | 6 | 7:
                space = schema.get("namespace")
                old = f"{space}.{schema['name']}" if space else schema["name"]
                schema.setdefault("aliases", []).append(old)
                schema["name"] = self._name() + "n"
            case _:
                schema["name"] = self._name() + "x"

    def _change_symbols(self, schema: dict[str, Any]) -> None:
        symbols = schema["symbols"]
        if self._random.random() < 0.4:
            symbols.insert(0, f"N{len(symbols)}x{self._random.randrange(1000)}")
        if self._random.random() < 0.3 and len(symbols) > 1:
            symbols.pop()
            schema.pop("default", None)
            if self._random.random() < 0.9:
                schema["default"] = symbols[0]

    def _change_fields(self, schema: dict[str, Any], chance: float) -> None:
        fields = schema["fields"]
        for field in fields:
            field["type"] = self._changed(field["type"], chance)
            if "default" in field:
                field["default"] = self.default(field["type"])
            if self._random.random() < 0.1:
                field.setdefault("aliases", []).append(field["name"])
                field["name"] += "r"
        if self._random.random() < 0.3 and fields:
            fields.pop(self._random.randrange(len(fields)))
        if self._random.random() < 0.5:
            of = self.any(2)
            name = f"g{self._name()}"
            fields.append({"name": name, "type": of, "default": self.default(of)})
        if self._random.random() < 0.2:
            self._random.shuffle(fields)

    def default(self, schema: Any) -> Any:
        """A default for the type, in one of the forms that Java reads."""
        pick = self._random.choice
        if isinstance(schema, list):
            return self.default(pick(schema))
        match schema if isinstance(schema, str) else schema["type"]:
            case "null":
                return None
            case "boolean":
                return pick([True, False])
            case "int" | "long":
                return pick([0, 7, -3, 0.0, 1e3])
            case "float" | "double":
                return pick([0, 1.5, -2])
            case "string" | "bytes":
                return pick(["", "text", "\u00ff"])
            case "fixed":
                return pick(["", "abcdefgh"])[: schema["size"]]
            case "enum":
                return pick(schema["symbols"])
            case "array":
                return [self.default(schema["items"]) for _ in range(self._random.randrange(3))]
            case "map":
                return {
                    f"k{number}": self.default(schema["values"])
                    for number in range(self._random.randrange(3))
                }
        value = {field["name"]: self.default(field["type"]) for field in schema["fields"]}
        for field in schema["fields"]:
            # The default of the field stands in for what the default of the record lacks.
            if "default" in field and self._random.random() < 0.5:
                del value[field["name"]]
        return value


def branch_name(schema: Any, namespace: str = "") -> str:
    """What Avro's JSON calls a branch of a union."""
    if isinstance(schema, str):
        return schema
    if schema["type"] not in NAMED:
        kind: str = schema["type"]
        return kind
    space = schema.get("namespace", namespace)
    return f"{space}.{schema['name']}" if space else schema["name"]


def column_value(schema: Any, value: Any, namespace: str = "") -> Any:
    """A value of Avro's JSON as our columns have it, which have the types of Spark's `from_avro`."""
    if isinstance(schema, list):
        return _of_union(schema, value, namespace)
    if isinstance(schema, dict):
        namespace = schema.get("namespace", namespace)
    match schema if isinstance(schema, str) else schema["type"]:
        case "bytes" | "fixed":
            return value.encode("latin-1")
        case "float":
            return struct.unpack("f", struct.pack("f", value))[0]
        case "double":
            return float(value)
        case "array":
            return [column_value(schema["items"], item, namespace) for item in value]
        case "map":
            return {key: column_value(schema["values"], item, namespace) for key, item in value.items()}
        case "record":
            fields = schema["fields"]
            found = {
                field["name"]: column_value(field["type"], value[field["name"]], namespace)
                for field in fields
            }
            return found or {"__dummy_field_in_empty_struct": None}
    return value


def _of_union(schema: list[Any], value: Any, namespace: str) -> Any:
    branches = [branch for branch in schema if branch != "null"]
    if value is None:
        return None
    ((name, content),) = value.items()
    (taken,) = (branch for branch in branches if branch_name(branch, namespace) == name)
    found = column_value(taken, content, namespace)
    names = {branch_name(branch, namespace) for branch in branches}
    if len(branches) == 1 or names == {"int", "long"}:
        return found
    if names == {"float", "double"}:
        return float(found)
    return {f"member{number}": found if branch is taken else None for number, branch in enumerate(branches)}


def text_value(schema: Any, value: Any, namespace: str = "") -> Any:
    """A value of Avro's JSON as our text has it: a union is the value in it."""
    if isinstance(schema, list):
        if value is None:
            return None
        ((name, content),) = value.items()
        (taken,) = (branch for branch in schema if branch_name(branch, namespace) == name)
        return text_value(taken, content, namespace)
    if isinstance(schema, dict):
        namespace = schema.get("namespace", namespace)
    match schema if isinstance(schema, str) else schema["type"]:
        case "array":
            return [text_value(schema["items"], item, namespace) for item in value]
        case "map":
            return {key: text_value(schema["values"], item, namespace) for key, item in value.items()}
        case "record":
            return {
                field["name"]: text_value(field["type"], value[field["name"]], namespace)
                for field in schema["fields"]
            }
    return value


def with_dicts(value: Any, like: Any) -> Any:
    """A value of a column, with maps as dicts where `like` has dicts."""
    if isinstance(like, dict) and value is not None:
        items = value.items() if isinstance(value, dict) else value
        return {key: with_dicts(item, like.get(key)) for key, item in items}
    if isinstance(like, list) and isinstance(value, list) and len(value) == len(like):
        return [with_dicts(item, other) for item, other in zip(value, like, strict=True)]
    return value
