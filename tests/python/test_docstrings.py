"""At run time, what is compiled has the docstrings and signatures of its stubs."""

from __future__ import annotations

import ast
import importlib
import inspect
import pydoc
import types
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from magicbyte import _core
from magicbyte.compat import _core as dropins

STUBS = Path(__file__).parents[2] / "python" / "magicbyte" / "_stubs"


Declaration = ast.ClassDef | ast.FunctionDef | ast.AnnAssign


def is_setter(member: ast.FunctionDef) -> bool:
    """True for the second declaration of a property."""
    return any(isinstance(one, ast.Attribute) and one.attr == "setter" for one in member.decorator_list)


def members() -> Iterator[tuple[str, Declaration, str | None, Any]]:
    """The declarations of the stubs: the name, the declaration, its docstring and the object."""
    for stub in sorted(STUBS.glob("[!_]*.pyi")):
        module = dropins if stub.stem.startswith("compat_") else _core
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef):
                continue
            found = getattr(module, node.name)
            yield node.name, node, ast.get_docstring(node), found
            if not isinstance(node, ast.ClassDef):
                continue
            for member, following in zip_longest(node.body, node.body[1:]):
                if isinstance(member, ast.FunctionDef) and not is_setter(member):
                    # A type's constructor is called, and shown, by the name of the type.
                    of = found if member.name == "__new__" else getattr(found, member.name)
                    yield f"{node.name}.{member.name}", member, ast.get_docstring(member), of
                if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
                    name = member.target.id
                    of = getattr(found, name)
                    # Constants have the docstrings of their types.
                    if isinstance(of, types.GetSetDescriptorType | types.MemberDescriptorType):
                        yield f"{node.name}.{name}", member, attribute_docstring(following), of


def attribute_docstring(following: ast.stmt | None) -> str | None:
    """The docstring of an attribute, which is the statement after it."""
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        return inspect.cleandoc(str(following.value.value))
    return None


# CPython documents the slots of special methods, such as `__len__`, itself.
ALL = [one for one in members() if type(one[-1]) is not types.WrapperDescriptorType]
DOCUMENTED = [(doc, found, name) for name, _, doc, found in ALL if doc]
CALLABLE = [
    (node.args, found, name)
    for name, node, _, found in ALL
    if isinstance(node, ast.FunctionDef) and callable(found)
]
RESULTS = {
    name: found
    for name, node, _, found in ALL
    if isinstance(node, ast.ClassDef) and hasattr(found, "__dataclass_fields__")
}


def test_docstrings_are_written_in_the_stubs() -> None:
    undocumented = [
        name for name, _, doc, found in ALL if not doc and not name.endswith("__") and inspect.getdoc(found)
    ]
    assert undocumented == []


@pytest.mark.parametrize("name", RESULTS)
def test_results_have_the_attributes_of_their_stubs(name: str) -> None:
    attributes = [
        one for one, node, *_ in ALL if isinstance(node, ast.AnnAssign) and one.startswith(f"{name}.")
    ]
    assert attributes == [f"{name}.{one}" for one in RESULTS[name].__match_args__]
    assert {f"{name}.{one}" for one in inspect.signature(RESULTS[name]).parameters} == {*attributes}


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
    names += [one.arg for one in (expected.vararg, expected.kwarg) if one]
    assert list(inspect.signature(found).parameters) == [one for one in names if one != "cls"]


# A class has the name of the module that users import it from.
HOMES = {found.__module__ for *_, found in ALL if isinstance(found, type)}
PUBLIC = {name for home in HOMES if "._" not in home for name in dir(importlib.import_module(home))}


@pytest.mark.parametrize(
    ("found", "name"), [(found, name) for _, found, name in CALLABLE if name.split(".")[0] in PUBLIC]
)
def test_signatures_have_their_defaults(found: Any, name: str) -> None:
    parameters = inspect.signature(found).parameters
    assert [one for one, parameter in parameters.items() if parameter.default is ...] == []


def test_the_help_page_of_a_class_has_its_methods_and_their_docstrings() -> None:
    page = pydoc.plain(pydoc.render_doc(_core.RecordsBuilder))
    assert "append(self, /, offset, timestamp, key=None, value=None, headers=None)" in page
    methods = [doc for doc, _, name in DOCUMENTED if name.startswith("RecordsBuilder.")]
    assert len(methods) >= 8
    for doc in methods:
        assert all(line.strip() in page for line in doc.splitlines())
