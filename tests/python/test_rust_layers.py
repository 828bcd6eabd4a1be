"""The layers of the Rust sources, which ARCHITECTURE.md lists from the lowest to the highest.

An import names the module that owns the name and leads to the same layer or a lower one; no two files
import each other, directly or through others. Test modules may import what they like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
Path_ = tuple[str, ...]

USE = re.compile(r"^[ \t]*(pub(?:\([\w: ]+\))? )?use ([^;]+);", re.M)
INLINE = re.compile(r"(?<![\w:$])(?:crate|super)(?:::\w+)+")
DEFINED = re.compile(
    r"^(?:pub(?:\([\w: ]+\))? )?(?:const )?(?:unsafe )?(?:extern \"C\" )?"
    r"(?:struct|enum|fn|trait|type|const|static|macro_rules!)\s+(\w+)",
    re.M,
)
TESTS = re.compile(r"^#\[cfg\((?:all\()?test\b", re.M)


class Module:
    """A file of the crate."""

    def __init__(self, file: Path) -> None:
        self.name = file.relative_to(SRC).as_posix()
        parts = file.relative_to(SRC).with_suffix("").parts
        self.path: Path_ = parts[:-1] if parts[-1] in ("mod", "lib") else parts
        text = file.read_text()
        if tests := TESTS.search(text):
            text = text[: tests.start()]
        self.text = re.sub(r"//.*|\(in crate[\w:]*\)", "", text)
        self.defined = set(DEFINED.findall(self.text))

    def uses(self) -> Iterator[tuple[Path_, bool]]:
        """Paths from the crate's root, and whether they are re-exported."""
        for public, tree in USE.findall(self.text):
            for parts in flatten(re.sub(r"\s+", " ", tree)):
                if path := self.absolute(parts):
                    yield path, bool(public)
        for text in INLINE.findall(USE.sub("", self.text)):
            if path := self.absolute(tuple(text.split("::"))):
                yield path, False
        # A parent that uses its children by relative paths.
        for child in modules():
            called = child[:-1] == self.path and rf"(?<![\w:]){child[-1]}::\w" if child else ""
            if called and re.search(called, USE.sub("", self.text)):
                yield child, False

    def absolute(self, parts: Path_) -> Path_ | None:
        """The path from the crate's root; None for other crates."""
        if parts[0] == "crate":
            return parts[1:]
        if parts[0] not in ("self", "super"):
            return (*self.path, *parts) if (*self.path, parts[0]) in modules() else None
        path = list(self.path)
        while parts and parts[0] in ("self", "super"):
            if parts[0] == "super":
                path.pop()
            parts = parts[1:]
        return (*path, *parts)


def flatten(tree: str) -> Iterator[Path_]:
    """`a::{b, c::d}` as a::b and a::c::d."""
    head, brace, rest = tree.strip().partition("{")
    if not brace:
        parts = tuple(part.split(" as ")[0].strip() for part in head.split("::") if part.strip())
        yield parts[:-1] if len(parts) > 1 and parts[-1] == "self" else parts
        return
    prefix = tuple(part.strip() for part in head.split("::") if part.strip())
    depth, item = 0, ""
    for character in rest.rstrip()[:-1] + ",":
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            if item.strip():
                yield from (prefix + parts for parts in flatten(item))
            item = ""
        else:
            item += character


@cache
def modules() -> dict[Path_, Module]:
    found = (Module(file) for file in SRC.rglob("*.rs"))
    return {module.path: module for module in found}


def owner(path: Path_) -> Path_:
    """The longest prefix that is a file."""
    return next(path[:n] for n in range(len(path), -1, -1) if path[:n] in modules())


def rooms() -> list[str]:
    """In the order of ARCHITECTURE.md: a folder imports only from itself and from those above it."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    return re.findall(r"^\| `src/([\w/]+?)(?:/|\.rs)` \|", text, re.M)


def room_of(module: Module) -> int:
    """The most specific room of a file, as a number that rises with the layers."""
    names = rooms()
    file = module.name.removesuffix(".rs").removesuffix("/mod")
    fitting = [name for name in names if file == name or file.startswith(name + "/")]
    assert fitting, f"src/{module.name} is in no room of ARCHITECTURE.md"
    return names.index(max(fitting, key=len))


def dependencies(module: Module) -> set[Path_]:
    # Re-exports of a parent's own children are not dependencies.
    own = {path for path, public in module.uses() if not (public and path[: len(module.path)] == module.path)}
    return {owner(path) for path in own} - {module.path}


def test_every_room_exists() -> None:
    assert len(rooms()) > 15
    assert [
        name for name in rooms() if not (SRC / name).is_dir() and not (SRC / f"{name}.rs").is_file()
    ] == []


def test_imports_lead_to_the_same_layer_or_a_lower_one() -> None:
    upward = [
        f"src/{module.name} imports {'::'.join(path)}"
        for module in modules().values()
        if module.path
        for path in dependencies(module)
        if path and room_of(modules()[path]) > room_of(module)
    ]
    assert upward == []


def test_imports_name_the_owner() -> None:
    through = [
        f"src/{module.name} imports {'::'.join(path)}"
        for module in modules().values()
        for path, public in module.uses()
        if not (public and module.name.endswith(("mod.rs", "lib.rs", "steps.rs")))
        and (home := owner(path)) != path
        and modules()[home].name.endswith(("mod.rs", "lib.rs", "steps.rs"))
        and path[len(home)] not in modules()[home].defined | {"*"}
    ]
    assert through == []


def test_no_cycles() -> None:
    graph = {path: dependencies(module) for path, module in modules().items() if path}
    done: set[Path_] = set()

    def walk(path: Path_, before: tuple[Path_, ...]) -> None:
        if path in before:
            cycle = [*before[before.index(path) :], path]
            raise AssertionError(" -> ".join("::".join(one) for one in cycle))
        if path not in done:
            for other in sorted(graph.get(path, ())):
                walk(other, (*before, path))
            done.add(path)

    for path in graph:
        walk(path, ())


def test_no_file_is_long() -> None:
    files = [
        file
        for folder in (SRC, *(ROOT / name for name in ("python", "tests", "examples", "scripts")))
        for end in ("rs", "py", "pyi")
        for file in folder.rglob(f"*.{end}")
    ]
    assert [file.name for file in files if file.read_text().count("\n") > 700] == []


def test_only_storage_opens_files_for_reading() -> None:
    opening = re.compile(
        r"File::open\(|\.read\(true\)|fs::(?:read|read_dir|read_to_string|metadata|canonicalize)\("
    )
    files = [module.name for module in modules().values() if opening.search(module.text)]
    # Writing durably opens the directory, to sync it.
    assert sorted(files) == ["log/storage/local.rs", "log/storage/mod.rs", "log/write/durable.rs"]
