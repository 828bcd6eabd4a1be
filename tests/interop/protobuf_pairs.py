"""Pairs of Protobuf schemas: the writer's, the reader's, and the rules of Confluent's that the reader breaks."""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    name: str
    old: str
    new: str
    rules: set[str]
    apicurio: bool | None = None
    """What Apicurio says where it differs from Confluent's rules.

    Its rules are those of protolock: a removed field needs its name and number reserved, names, types and labels
    may not change. It does not look at packages, at groups, nor at which fields are in a oneof.
    """


def proto3(text: str) -> str:
    return f'syntax = "proto3"; {text}'


def proto2(text: str) -> str:
    return f'syntax = "proto2"; {text}'


def message(fields: str, more: str = "") -> str:
    return proto3(f"message A {{ {fields} }} {more}")


def typed(name: str, old: str, new: str, rules: set[str], apicurio: bool | None = None) -> Pair:
    """A field of another type."""
    rest = "enum E { ZERO = 0; } message B { int32 b = 1; } message C { int32 b = 1; }"
    return Pair(name, message(f"{old} a = 1;", rest), message(f"{new} a = 1;", rest), rules, apicurio)


def oneofs(name: str, old: str, new: str, rules: set[str], apicurio: bool | None = None) -> Pair:
    return Pair(name, message(old), message(new), rules, apicurio)


def labels(name: str, old: str, new: str, rules: set[str], apicurio: bool | None = None) -> Pair:
    return Pair(name, proto2(f"message A {{ {old} }}"), proto2(f"message A {{ {new} }}"), rules, apicurio)


KIND, SCALAR = {"FIELD_KIND_CHANGED"}, {"FIELD_SCALAR_KIND_CHANGED"}
NAMED, LABEL = {"FIELD_NAMED_TYPE_CHANGED"}, {"FIELD_NUMERIC_LABEL_CHANGED"}
ENUM = "enum E { ZERO = 0; ONE = 1; }"

PAIRS = [
    # Fields.
    Pair("the same", message("int32 a = 1;"), message("int32 a = 1;"), set()),
    Pair("field added", message("int32 a = 1;"), message("int32 a = 1; string b = 2;"), set()),
    Pair("field removed", message("int32 a = 1; string b = 2;"), message("int32 a = 1;"), set(), False),
    Pair(
        "field removed and reserved",
        message("int32 a = 1; string b = 2;"),
        message('int32 a = 1; reserved 2; reserved "b";'),
        set(),
    ),
    Pair("field renamed", message("int32 a = 1;"), message("int32 b = 1;"), set(), False),
    Pair("number changed", message("int32 a = 1;"), message("int32 a = 2;"), set(), False),
    Pair("fields reordered", message("int32 a = 1; bool b = 2;"), message("bool b = 2; int32 a = 1;"), set()),
    Pair(
        "names swapped, types differ",
        message("int32 a = 1; string b = 2;"),
        message("string a = 1; int32 b = 2;"),
        SCALAR,
    ),
    Pair(
        "field option",
        message("repeated int32 a = 1;"),
        message("repeated int32 a = 1 [packed = false];"),
        set(),
    ),
    # Types.
    typed("int32 to int64", "int32", "int64", set(), False),
    typed("uint64 to int32", "uint64", "int32", set(), False),
    typed("bool to uint32", "bool", "uint32", set(), False),
    typed("int32 to enum", "int32", "E", set(), False),
    typed("enum to int64", "E", "int64", set(), False),
    typed("sint32 to sint64", "sint32", "sint64", set(), False),
    typed("int32 to sint32", "int32", "sint32", SCALAR),
    typed("enum to sint32", "E", "sint32", SCALAR),
    typed("fixed32 to sfixed32", "fixed32", "sfixed32", set(), False),
    typed("fixed64 to sfixed64", "fixed64", "sfixed64", set(), False),
    typed("fixed32 to fixed64", "fixed32", "fixed64", SCALAR),
    typed("fixed32 to float", "fixed32", "float", SCALAR),
    typed("float to double", "float", "double", SCALAR),
    typed("double to int64", "double", "int64", SCALAR),
    typed("string to bytes", "string", "bytes", set(), False),
    typed("bytes to string", "bytes", "string", set(), False),
    typed("string to int32", "string", "int32", SCALAR),
    typed("int32 to a message", "int32", "B", KIND),
    typed("a message to bytes", "B", "bytes", KIND),
    typed("enum to a message", "E", "B", KIND),
    typed("a message of another name", "B", "C", NAMED),
    typed("the same message by another way of naming it", "B", ".B", set()),
    typed("scalar to map", "int32", "map<string, int32>", KIND),
    typed("message to map", "B", "map<string, int32>", KIND),
    # Maps.
    typed("map: the same", "map<string, int32>", "map<string, int32>", set()),
    typed("map: values in the same group", "map<string, int32>", "map<string, int64>", set(), False),
    typed("map: other values", "map<string, int32>", "map<string, string>", SCALAR),
    typed("map: other keys", "map<string, int32>", "map<int32, int32>", SCALAR),
    typed("map: values become messages", "map<string, int32>", "map<string, B>", KIND),
    typed("map: messages of another name", "map<string, B>", "map<string, C>", NAMED),
    # Labels.
    typed("no label to repeated", "int32", "repeated int32", set(), False),
    typed("optional to repeated, a number", "optional int32", "repeated int32", LABEL),
    typed("optional to repeated, an enum", "optional E", "repeated E", LABEL),
    typed("repeated to optional, a number", "repeated double", "optional double", LABEL),
    typed("optional to repeated, a string", "optional string", "repeated string", set(), False),
    typed("repeated to optional, bytes", "repeated bytes", "optional bytes", set(), False),
    typed("optional to repeated, a message", "optional B", "repeated B", set(), False),
    typed("no label to optional", "int32", "optional int32", set(), False),
    typed("label and type", "optional int32", "repeated string", SCALAR),
    labels("required to optional, a number", "required int32 a = 1;", "optional int32 a = 1;", LABEL),
    labels(
        "required to optional, a string", "required string a = 1;", "optional string a = 1;", set(), False
    ),
    labels(
        "required added",
        "optional int32 a = 1;",
        "optional int32 a = 1; required int32 b = 2;",
        {"REQUIRED_FIELD_ADDED"},
    ),
    labels(
        "required removed",
        "optional int32 a = 1; required int32 b = 2;",
        "optional int32 a = 1;",
        {"REQUIRED_FIELD_REMOVED"},
    ),
    labels("optional added", "optional int32 a = 1;", "optional int32 a = 1; optional int32 b = 2;", set()),
    labels("default changed", "optional int32 a = 1 [default = 1];", "optional int32 a = 1;", set()),
    labels(
        "group: the same",
        "optional group G = 1 { optional int32 a = 1; }",
        "optional group G = 1 { optional int32 a = 1; }",
        set(),
    ),
    labels(
        "group: a field of it changed",
        "optional group G = 1 { optional int32 a = 1; }",
        "optional group G = 1 { optional string a = 1; }",
        SCALAR | NAMED,
        True,
    ),
    labels(
        "group to message",
        "optional group G = 1 { optional int32 a = 1; }",
        "message G { optional int32 a = 1; } optional G g = 1;",
        KIND,
        True,
    ),
    labels(
        "group removed",
        "optional int32 b = 2; optional group G = 1 { optional int32 a = 1; }",
        "optional int32 b = 2;",
        set(),
    ),
    # Oneofs.
    oneofs("oneof: one field moved in", "int32 a = 1;", "oneof o { int32 a = 1; string b = 2; }", set()),
    oneofs(
        "oneof: two fields moved in",
        "int32 a = 1; int32 b = 2;",
        "oneof o { int32 a = 1; int32 b = 2; }",
        {"MULTIPLE_FIELDS_MOVED_TO_ONEOF"},
        True,
    ),
    oneofs(
        "oneof: moved into an existing one",
        "int32 a = 1; oneof o { int32 b = 2; }",
        "oneof o { int32 a = 1; int32 b = 2; }",
        {"FIELD_MOVED_TO_EXISTING_ONEOF"},
        True,
    ),
    oneofs(
        "oneof: two joined",
        "oneof o { int32 a = 1; } oneof p { int32 b = 2; }",
        "oneof o { int32 a = 1; int32 b = 2; }",
        {"FIELD_MOVED_TO_EXISTING_ONEOF"},
        True,
    ),
    oneofs("oneof: field added", "oneof o { int32 a = 1; }", "oneof o { int32 a = 1; int32 b = 2; }", set()),
    oneofs(
        "oneof: field removed",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof o { int32 a = 1; }",
        {"ONEOF_FIELD_REMOVED"},
    ),
    oneofs(
        "oneof: field moved out",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof o { int32 a = 1; } int32 b = 2;",
        set(),
    ),
    oneofs(
        "oneof: field moved out, of another type",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof o { int32 a = 1; } string b = 2;",
        SCALAR,
    ),
    oneofs(
        "oneof: its only field removed, another moved in",
        "sfixed64 a = 2; oneof o { fixed64 g = 1; }",
        "oneof o { sfixed64 a = 2; }",
        {"ONEOF_FIELD_REMOVED"},
    ),
    oneofs(
        "oneof: its only field removed, a new one in it",
        "int32 a = 2; oneof o { int32 g = 1; }",
        "int32 a = 2; oneof o { int32 h = 3; }",
        {"ONEOF_FIELD_REMOVED"},
    ),
    oneofs(
        "oneof: renamed, and a field removed",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof p { int32 a = 1; }",
        set(),
        False,
    ),
    oneofs(
        "oneof: a field removed, the other moved out",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "int32 a = 1;",
        set(),
        False,
    ),
    oneofs("oneof: renamed", "oneof o { int32 a = 1; }", "oneof p { int32 a = 1; }", set()),
    oneofs("oneof: removed", "oneof o { int32 a = 1; } int32 b = 2;", "int32 b = 2;", set(), False),
    oneofs("oneof: taken apart", "oneof o { int32 a = 1; int32 b = 2; }", "int32 a = 1; int32 b = 2;", set()),
    oneofs("oneof: type of a field", "oneof o { int32 a = 1; }", "oneof o { string a = 1; }", SCALAR),
    oneofs("oneof: added for new fields", "int32 a = 1;", "int32 a = 1; oneof o { int32 b = 2; }", set()),
    # Messages, enums, packages.
    Pair(
        "message added", message("int32 a = 1;"), message("int32 a = 1;", "message B { int32 b = 1; }"), set()
    ),
    Pair(
        "message removed",
        message("int32 a = 1;", "message B { int32 b = 1; }"),
        message("int32 a = 1;"),
        {"MESSAGE_REMOVED"},
    ),
    Pair(
        "messages reordered",
        proto3("message A { int32 a = 1; } message B { int32 b = 1; }"),
        proto3("message B { int32 b = 1; } message A { int32 a = 1; }"),
        set(),
    ),
    Pair(
        "nested message removed",
        message("int32 a = 1; message B { int32 b = 1; }"),
        message("int32 a = 1;"),
        {"MESSAGE_REMOVED"},
    ),
    Pair(
        "field of a nested message changed",
        message("B a = 1; message B { int32 b = 1; }"),
        message("B a = 1; message B { string b = 1; }"),
        SCALAR,
    ),
    Pair(
        "nested message moved out",
        message("B a = 1; message B { int32 b = 1; }"),
        message("B a = 1;", "message B { int32 b = 1; }"),
        {"MESSAGE_REMOVED", "FIELD_NAMED_TYPE_CHANGED"},
    ),
    Pair("a message in itself", message("A a = 1; int32 b = 2;"), message("A a = 1; int32 b = 2;"), set()),
    Pair(
        "a message in itself, changed",
        message("A a = 1; int32 b = 2;"),
        message("A a = 1; string b = 2;"),
        SCALAR,
    ),
    Pair("enum added", message("int32 a = 1;"), message("int32 a = 1;", ENUM), set()),
    Pair("enum removed", message("int32 a = 1;", ENUM), message("int32 a = 1;"), set()),
    Pair(
        "enum value added",
        message("E a = 1;", ENUM),
        message("E a = 1;", "enum E { ZERO = 0; ONE = 1; TWO = 2; }"),
        set(),
    ),
    Pair(
        "enum value removed",
        message("E a = 1;", ENUM),
        message("E a = 1;", "enum E { ZERO = 0; }"),
        set(),
        False,
    ),
    Pair(
        "enum value renamed",
        message("E a = 1;", ENUM),
        message("E a = 1;", "enum E { ZERO = 0; UNO = 1; }"),
        set(),
        False,
    ),
    Pair(
        "package changed",
        proto3("package x; message A { int32 a = 1; }"),
        proto3("package y; message A { int32 a = 1; }"),
        {"PACKAGE_CHANGED"},
        True,
    ),
    Pair(
        "package the same",
        proto3("package x; message A { B b = 1; } message B { int32 a = 1; }"),
        proto3("package x; message A { .x.B b = 1; } message B { int32 a = 1; }"),
        set(),
    ),
    Pair(
        "comments and options",
        message("int32 a = 1;"),
        message("int32 a = 1; // an a\n", "option deprecated = true;"),
        set(),
    ),
    Pair(
        "syntax changed",
        proto2("message A { optional string a = 1; }"),
        proto3("message A { optional string a = 1; }"),
        set(),
    ),
    Pair(
        "well-known type",
        proto3('import "google/protobuf/timestamp.proto"; message A { google.protobuf.Timestamp a = 1; }'),
        proto3('import "google/protobuf/duration.proto"; message A { google.protobuf.Duration a = 1; }'),
        NAMED,
    ),
]
