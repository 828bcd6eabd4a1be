"""Writes docs/ of the bindings: the docstrings of the compiled modules, from their stubs in `_stubs/`.

Each stub becomes a macro of its name, for the Rust sources: `#[doc = docs::builder!(RecordsBuilder.build)]`.
With --check it writes nothing, and fails if the folder does not match the stubs.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
STUBS = ROOT / "python" / "magicbyte" / "_stubs"
FOLDER = ROOT / "crates" / "magicbyte-python" / "src" / "docs"
INDEX = """\
//! The docstrings of the compiled modules: a macro for each stub. Written by `make docstrings`.

{modules}

{macros}
"""
FILE = """\
//! The docstrings of `_stubs/{name}.pyi`. Written by `make docstrings`.

macro_rules! {name} {{
{arms}
}}
pub(crate) use {name};
"""
ARM = """\
    ({path}) => {{
        {text}
    }};"""


def main() -> int:
    """Writes or checks the folder; returns the exit code."""
    files = written()
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.rs")}
    if "--check" in sys.argv[1:]:
        if found != files:
            print(
                "the docstrings of the bindings do not match the stubs: run `make docstrings`",
                file=sys.stderr,
            )
        return int(found != files)
    FOLDER.mkdir(exist_ok=True)
    for name in found.keys() - files.keys():
        (FOLDER / name).unlink()
    for name, text in files.items():
        # An unchanged file keeps its time, so that nothing is built again.
        if found.get(name) != text:
            (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


def written() -> dict[str, str]:
    """The files of the folder by name."""
    files = {}
    for stub in sorted(STUBS.glob("[!_]*.pyi")):
        arms = [ARM.format(path=path, text=literal(doc)) for path, doc in docstrings(stub)]
        files[f"{stub.stem}.rs"] = FILE.format(name=stub.stem, arms="\n".join(arms))
    names = [name.removesuffix(".rs") for name in files]
    modules = "\n".join(f"mod {name};" for name in names)
    macros = "\n".join(f"pub(super) use {name}::{name};" for name in names)
    return files | {"mod.rs": INDEX.format(modules=modules, macros=macros)}


def docstrings(stub: Path) -> Iterator[tuple[str, str]]:
    """The docstring of each class, method, attribute and function, by its name."""
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        yield from _of(node, "")
        for member in node.body if isinstance(node, ast.ClassDef) else ():
            yield from _of(member, f"{node.name}.")


def _of(node: ast.stmt, prefix: str) -> Iterator[tuple[str, str]]:
    if not isinstance(node, ast.ClassDef | ast.FunctionDef):
        return
    # CPython has its own docstrings for special methods; to it, Arrow's are methods like any other.
    special = node.name.startswith("__") and not node.name.startswith("__arrow_c_")
    if (doc := ast.get_docstring(node)) and not special:
        yield prefix + node.name, inspect.cleandoc(doc)


def literal(text: str) -> str:
    """A raw string of Rust."""
    fence = "#" if '"' in text else ""
    return f'r{fence}"{text}"{fence}'


if __name__ == "__main__":
    sys.exit(main())
