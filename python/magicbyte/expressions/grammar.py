"""The accepted expressions: DuckDB parses them, and every node of the syntax tree must be allowed here.

An expression sees one record and nothing else: no other table, file, setting, clock or chance, so that it
gives the same result wherever it is evaluated. `functions.py` lists the allowed functions; a function that
makes text may be used only a limited number of times. The check covers the tree of the whole query that is
executed later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from magicbyte.expressions.errors import ExpressionError
from magicbyte.expressions.functions import (
    BLOB_TYPES,
    FUNCTIONS,
    JOINS,
    OPERATORS,
    TAKE_PATHS,
    TEXT_TYPES,
    TEXTS,
    TYPES,
)

if TYPE_CHECKING:
    import duckdb

__all__ = ["Accepted", "accept"]

_MOST_BYTES = 1 << 18
_MOST_LEVELS = 100
_TOO_DEEP = f"it is nested more than {_MOST_LEVELS} levels deep"
_MOST_TEXTS = 64
"""The maximum number of calls that make text; each can hold a copy of the value for some thousand records."""
_MOST_JOINS = 8
"""The maximum number of texts that are joined or become bytes: each result holds all texts joined before."""
_MOST_CONSTANT_BYTES = 1 << 17
"""The maximum bytes of a constant that becomes part of a text, multiplied by its possible copies. DuckDB
makes text for 2,048 records at a time, which amounts to 256 MiB."""
_MOST_FORMAT_BYTES = 100
"""The maximum bytes of a format of `strftime`: two bytes may become 24."""

_QUERY = "SELECT coalesce(CAST(({}\n) AS BOOLEAN), false) AS selected FROM records"
_RESERVED = b"offset"
"""The only column whose name is also a reserved keyword."""

# DuckDB's parser takes gigabytes to report an error after thousands of parentheses, or of signs.
_LEVELS = {b"(": 1, b"[": 1, b"{": 1, b")": -1, b"]": -1, b"}": -1}

_PLAIN = {"BETWEEN", "CASE", "CAST", "COMPARISON", "CONJUNCTION", "CONSTANT"}
_NAMES = {
    "COLLATE": "COLLATE",
    "DEFAULT": "DEFAULT",
    "LAMBDA": "-> (for JSON, there is ->>)",
    "PARAMETER": "a parameter",
    "STAR": "*",
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function",
}


class Accepted(NamedTuple):
    """A valid expression."""

    query: str
    """A query for the value of the expression in each row of the table `records`."""
    columns: tuple[str, ...]
    """The columns that it uses, in the order of `names`."""


def accept(expression: str, names: tuple[str, ...], database: duckdb.DuckDBPyConnection) -> Accepted:
    """Checks that the text is one expression over columns of these names, with allowed constructs only.

    Functions that do not exist with these types of arguments are only found when the query is bound.

    Raises:
        ExpressionError: if it is not; the message says what is not allowed.

    """
    query = _QUERY.format(_with_quotes(expression))
    frame, inner = _split(_parse(query, database))
    used, texts, joins, longest = set(), 0, 0, 0
    by_lower = {name.lower(): name for name in names}
    for node, level, is_copied in _nodes(inner):
        if level > _MOST_LEVELS:
            raise ExpressionError(_TOO_DEEP)
        if node["class"] == "COLUMN_REF":
            used.add(_column(node, by_lower))
        else:
            _check(node)
        texts += _makes_text(node)
        joins += _joins(node)
        if is_copied:
            longest = max(longest, len(str(node.get("literal", {}).get("text", "")).encode()))
    # Around the expression, the tree is that of the query, whatever the text is.
    if frame != _split(_parse(_QUERY.format("true"), database))[0]:
        raise ExpressionError("it is not one expression")
    if texts > _MOST_TEXTS:
        raise ExpressionError(f"it makes text in more than {_MOST_TEXTS} places (upper, substring, ->>, ...)")
    if joins > _MOST_JOINS:
        raise ExpressionError(f"it joins more than {_MOST_JOINS} texts (||, concat, encode, casts to BLOB)")
    if texts * (joins + 1) * longest > _MOST_CONSTANT_BYTES:
        most = _MOST_CONSTANT_BYTES // (texts * (joins + 1))
        raise ExpressionError(
            f"it makes text in {texts} places, and joins {joins}, from a constant of {longest} bytes: at most"
            f" {most} bytes are allowed then"
        )
    return Accepted(query, tuple(name for name in names if name in used))


def _with_quotes(expression: str) -> str:
    """The expression with double quotes around each name that is also a keyword.

    Checks its length and its parentheses first.
    """
    import duckdb

    try:
        text = expression.encode()
    except UnicodeEncodeError:
        raise ExpressionError("it is not valid Unicode") from None
    if len(text) > _MOST_BYTES:
        raise ExpressionError(f"it is longer than {_MOST_BYTES >> 10} KiB")
    if b"\0" in text or not text.strip():
        raise ExpressionError("it has a zero byte" if text.strip() else "it is empty")
    try:
        tokens = duckdb.tokenize(expression)
    except duckdb.Error as error:
        raise ExpressionError(str(error).partition("\n")[0]) from None
    quoted, end, level, signs = b"", 0, 0, 0
    for position, kind in tokens:
        # Positions are those of bytes.
        signs = signs + 1 if kind == duckdb.token_type.operator else 0
        if signs:
            level += _LEVELS.get(text[position : position + 1], 0)
            if level < 0:
                raise ExpressionError("it closes a parenthesis that it does not open")
            if level > _MOST_LEVELS or signs > 3 * _MOST_LEVELS:
                raise ExpressionError(_TOO_DEEP)
        after = position + len(_RESERVED)
        if kind == duckdb.token_type.keyword and text[position:after].lower() == _RESERVED:
            quoted += b'%s"%s"' % (text[end:position], _RESERVED)
            end = after
    if level > 0:
        raise ExpressionError("it does not close a parenthesis that it opens")
    return (quoted + text[end:]).decode()


def _parse(query: str, database: duckdb.DuckDBPyConnection) -> Any:
    [[text]] = database.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    try:
        tree = json.loads(text)
    except RecursionError:
        raise ExpressionError(_TOO_DEEP) from None
    if tree["error"]:
        # Without the lines that follow an unterminated comment.
        raise ExpressionError(str(tree["error_message"]).partition("\n")[0])
    return tree


def _split(tree: dict[str, Any]) -> tuple[str, Any]:
    """The query without the expression and without the places of its parts, and the expression.

    Raises an error if the query does not have the form of ours.
    """
    try:
        cast = tree["statements"][0]["node"]["select_list"][0]["children"][0]
        inner, cast["child"] = cast["child"], None
    except (LookupError, TypeError):
        raise ExpressionError("it is not one expression") from None
    return re.sub(r'"query_location(_length)?": \d+', "", json.dumps(tree)), inner


def _nodes(expression: Any) -> Iterator[tuple[dict[str, Any], int, bool]]:
    """Every node with its level, from 1, and True if text is made from it."""
    pending = [(expression, 1, False)]
    while pending:
        part, level, is_copied = pending.pop()
        if isinstance(part, list):
            pending += [(one, level, is_copied) for one in part]
        elif isinstance(part, dict):
            if "class" in part:
                yield part, level, is_copied
                level += 1
                is_copied = is_copied or part["class"] == "CAST" or _makes_text(part)
            pending += [(one, level, is_copied) for one in part.values()]


def _column(node: dict[str, Any], by_lower: dict[str, str]) -> str:
    names = node["column_names"]
    if len(names) == 1 and (column := by_lower.get(names[0].lower())):
        return column
    raise ExpressionError(f"{'.'.join(names)}: no such column; there are {', '.join(by_lower.values())}")


def _function(node: dict[str, Any]) -> str:
    return str(node["function_name"]).lower() if node["class"] == "FUNCTION" else ""


def _type(node: dict[str, Any]) -> str:
    return str(node["type_name"]).lower() if node["class"] == "TYPE" else ""


def _makes_text(node: dict[str, Any]) -> bool:
    return _function(node) in TEXTS or _type(node) in TEXT_TYPES


def _joins(node: dict[str, Any]) -> int:
    """The number of extra copies of its input that the result of a node may hold."""
    if _function(node) in JOINS:
        return max(len(node["arguments"]) - 1, 0)
    return int(_function(node) == "encode" or _type(node) in BLOB_TYPES)


def _check(node: dict[str, Any]) -> None:
    """Raises an error if a node other than a column is not allowed."""
    kind = node["class"]
    if kind == "FUNCTION":
        _check_function(node)
    elif kind == "TYPE":
        # Only user-defined types have qualified names.
        if _type(node) not in TYPES or node["qualified_name"]["path"] != [node["type_name"]]:
            raise ExpressionError(f"the type {node['type_name']} is not allowed")
    elif kind == "OPERATOR":
        if node["type"] not in OPERATORS:
            name = node["type"].removeprefix("OPERATOR_").replace("_", " ").lower()
            raise ExpressionError(f"{name} is not allowed")
    elif kind not in _PLAIN:
        raise ExpressionError(f"{_NAMES.get(kind, kind.lower())} is not allowed")


def _check_function(node: dict[str, Any]) -> None:
    name = _function(node)
    if name not in FUNCTIONS or node["qualified_name"]["path"] != [node["function_name"]]:
        raise ExpressionError(f"the function {'.'.join(node['qualified_name']['path'])} is not allowed")
    if node["filter"] or node["distinct"] or node["order_bys"]["orders"] or node["export_state"]:
        raise ExpressionError(f"{name} is not an aggregate")
    if name == "strftime" and not any(map(_is_short_text, node["arguments"])):
        raise ExpressionError(f"strftime takes a constant format of at most {_MOST_FORMAT_BYTES} bytes")
    if name in TAKE_PATHS and len(node["arguments"]) > 1:
        # Wildcards can match each level of a document, so the result can be far larger than the document.
        path = node["arguments"][1]["expression"].get("literal", {}).get("text")
        if path is None or "*" in path or ".." in path:
            raise ExpressionError(f"{name} takes a constant path without wildcards")


def _is_short_text(argument: dict[str, Any]) -> bool:
    literal = argument["expression"].get("literal", {})
    return literal.get("kind") == "STRING" and len(literal["text"].encode()) <= _MOST_FORMAT_BYTES
