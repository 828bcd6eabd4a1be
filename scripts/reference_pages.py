"""The pages of the reference that are made of declarations: the tables' schemas, and the reports."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any, ForwardRef, get_args, get_type_hints, is_typeddict

import magicbyte.commands
import pyarrow as pa
from magicbyte.jobs.internal_tables import OFFSETS, SHARE_OFFSETS, TOPICS
from magicbyte.jobs.run.reading import table_schema
from magicbyte.spark.schema import PRODUCERS, SEGMENTS, TRANSACTIONS

TABLES = {
    "records": "A row per record of good batches. Spark, `to_arrow` and JSON lines have its columns.",
    "batches": "A row per batch.",
    "problems": "A row per damaged range, or per problem of a directory.",
}
INTERNAL = {
    "offsets": (OFFSETS, "A row per committed offset, if `__consumer_offsets` is read."),
    "share_offsets": (
        SHARE_OFFSETS,
        "A row per position of a share group, if `__share_group_state` is read.",
    ),
    "topics": (TOPICS, "A row per partition, if `__cluster_metadata` is read."),
}
SPARK = {
    "segments": (SEGMENTS, "A row per file of the log. `state` is `read`, or `ignored:` and the reason."),
    "producers": (PRODUCERS, "A row per producer and epoch."),
    "transactions": (TRANSACTIONS, "A row per transaction, or per marker without data."),
}


def tables_page() -> str:
    """The columns of every table."""
    return "\n".join(
        [
            "# Tables\n",
            "The columns of the tables that `ingest` and Spark have, with Arrow's types. Any may be null.\n",
            *(columns(name, table_schema(name), says) for name, says in TABLES.items()),
            "The next two come with `ingest`:\n",
            *(columns(name, schema, says) for name, (schema, says) in INTERNAL.items()),
            'The others are Spark\'s alone: `.option("table", "segments")`.\n',
            *(columns(name, schema, says) for name, (schema, says) in SPARK.items()),
        ]
    )


def columns(name: str, schema: pa.Schema, says: str) -> str:
    """A table, and a row for each of its columns."""
    rows = [f"| `{field.name}` | `{field.type}` |" for field in schema]
    return "\n".join([f"## {name}\n", f"{says}\n", "| column | type |", "|---|---|", *rows, ""])


def reports_page() -> str:
    """What the functions of jobs return, and their commands print with `--json`."""
    returned: dict[type, list[str]] = {}
    for name in magicbyte.commands.__all__:
        function = getattr(magicbyte, name)
        names = names_of(sys.modules[function.__module__])
        for kind in types_in(eval(function.__annotations__["return"], names)):
            returned.setdefault(kind, []).append(name)
    lines = [
        "# Reports\n",
        "A function of a job returns a document, which its command prints with `--json`.\n",
    ]
    described: dict[type, str] = {}
    waiting = list(returned)
    while waiting:
        kind = waiting.pop(0)
        if kind not in described:
            described[kind] = report(kind, returned.get(kind, []))
            fields = get_type_hints(kind, names_of(sys.modules[kind.__module__]))
            waiting += [part for hint in fields.values() for part in types_in(hint)]
    return "\n".join([*lines, *described.values()])


def types_in(hint: Any) -> Iterator[type]:
    """The documents that a type consists of, such as those of a list."""
    if is_typeddict(hint):
        yield hint
    for part in get_args(hint):
        yield from types_in(part)


def names_of(module: ModuleType) -> dict[str, Any]:
    """The names of a module, with those that it imports for type checkers only."""
    names = dict(vars(module))
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec("\n".join(map(ast.unparse, node.body)), names)
    return names


def report(kind: type, functions: list[str]) -> str:
    """A document: its docstring, the functions that return it, and a row for each field."""
    by = f" Returned by {', '.join(f'`{name}`' for name in functions)}." if functions else ""
    lines = [f"## {kind.__name__}\n", f"{inspect.cleandoc(kind.__doc__ or '')}{by}\n"]
    lines += ["| field | type | meaning |", "|---|---|---|"]
    says = meanings(kind)
    for name, written in kind.__annotations__.items():
        text = written.__forward_arg__ if isinstance(written, ForwardRef) else str(written)
        text = text.replace("|", "\\|")
        lines.append(f"| `{name}` | `{text}` | {says.get(name, '')} |")
    return "\n".join([*lines, ""])


def meanings(kind: type) -> dict[str, str]:
    """The text below each field, of a class and of those that it extends."""
    found: dict[str, str] = {}
    for base in getattr(kind, "__orig_bases__", ()):
        if is_typeddict(base):
            found |= meanings(base)
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(tree, ast.ClassDef)
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(field.target, ast.Name)
            says = inspect.cleandoc(str(ast.literal_eval(text.value)))
            found[field.target.id] = " ".join(says.split()).replace("|", "\\|")
    return found
