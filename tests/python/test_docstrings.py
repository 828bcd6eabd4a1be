"""At run time, what is compiled has the docstrings and signatures of its stubs."""

from __future__ import annotations

import ast
import inspect
import pydoc
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from magicbyte import _core
from magicbyte.compat import _core as dropins

STUBS = Path(__file__).parents[2] / "python" / "magicbyte" / "_stubs"


def members() -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef, Any]]:
    """What the stubs declare: its name, its declaration and the object."""
    for stub in sorted(STUBS.glob("[!_]*.pyi")):
        module = dropins if stub.stem.startswith("compat_") else _core
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef):
                continue
            found = getattr(module, node.name)
            yield node.name, node, found
            for member in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(member, ast.FunctionDef):
                    # A type's constructor is called, and shown, by the name of the type.
                    of = found if member.name == "__new__" else getattr(found, member.name)
                    yield f"{node.name}.{member.name}", member, of


# CPython documents the slots of special methods, such as `__len__`, itself.
ALL = [
    (name, node, found) for name, node, found in members() if type(found) is not types.WrapperDescriptorType
]
DOCUMENTED = [(doc, found, name) for name, node, found in ALL if (doc := ast.get_docstring(node))]
CALLABLE = [
    (node.args, found, name)
    for name, node, found in ALL
    if isinstance(node, ast.FunctionDef) and callable(found)
]


def test_docstrings_are_written_in_the_stubs() -> None:
    undocumented = [
        name
        for name, node, found in ALL
        if not ast.get_docstring(node) and not name.endswith("__") and inspect.getdoc(found)
    ]
    assert undocumented == []


def test_constructors_are_documented_with_their_classes() -> None:
    assert [name for _, _, name in DOCUMENTED if name.endswith(".__new__")] == []


@pytest.mark.parametrize(("doc", "found", "name"), DOCUMENTED, ids=[name for *_, name in DOCUMENTED])
def test_docstrings_are_those_of_the_stubs(doc: str, found: Any, name: str) -> None:
    assert inspect.getdoc(found) == inspect.cleandoc(doc)
    help_page = pydoc.plain(pydoc.render_doc(found))
    assert [line for line in doc.splitlines() if line.strip() not in help_page] == []


@pytest.mark.parametrize(("expected", "found", "name"), CALLABLE, ids=[name for *_, name in CALLABLE])
def test_parameters_are_those_of_the_stubs(expected: ast.arguments, found: Any, name: str) -> None:
    names = [one.arg for one in (*expected.posonlyargs, *expected.args, *expected.kwonlyargs)]
    assert list(inspect.signature(found).parameters) == [one for one in names if one != "cls"]


def test_the_help_page_of_a_class_has_its_methods_and_their_docstrings() -> None:
    page = pydoc.plain(pydoc.render_doc(_core.RecordsBuilder))
    assert "append(self, /, offset, timestamp, key=None, value=None, headers=None)" in page
    methods = [doc for doc, _, name in DOCUMENTED if name.startswith("RecordsBuilder.")]
    assert len(methods) >= 8
    for doc in methods:
        assert all(line.strip() in page for line in doc.splitlines())
