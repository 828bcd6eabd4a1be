"""The modules of the Python package form layers: imports point downwards, and there is no cycle.

Every import counts, also those inside functions and those for type checkers.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[2] / "python"

# From the lowest to the highest; a module belongs to the longest matching prefix.
LAYERS = [
    # The compiled core imports columns, convert, enums and errors only at run time: it counts as lowest.
    {"magicbyte._core", "magicbyte.compat._core"},
    {
        "magicbyte.bounded_json",
        "magicbyte.columns",
        "magicbyte.derived_stream",
        "magicbyte.enums",
        "magicbyte.errors",
        "magicbyte.expressions",
        "magicbyte.extras",
        "magicbyte.html",
        "magicbyte.lab",
        "magicbyte.model",
        "magicbyte.notebook",
        "magicbyte.read_accounts",
        "magicbyte.reconciliation",
    },
    {"magicbyte.storage"},
    {
        "magicbyte.broker",
        "magicbyte.compat",
        "magicbyte.conversion",
        "magicbyte.files",
        "magicbyte.internal_topics",
        "magicbyte.listing",
        "magicbyte.live",
        "magicbyte.log",
        "magicbyte.log_dir",
        "magicbyte.message",
        "magicbyte.damage",
        "magicbyte.open_partition",
        "magicbyte.partition_files",
        "magicbyte.state",
        "magicbyte.table",
        "magicbyte.table_options",
        "magicbyte.typed_stream",
        "magicbyte.wire",
    },
    {"magicbyte.schema"},
    {"magicbyte.options"},
    {"magicbyte.jobs.find"},
    {"magicbyte.jobs.run"},
    {"magicbyte.jobs.publish"},
    {"magicbyte.jobs"},
    {"magicbyte.lake"},
    {
        "magicbyte.calls",
        "magicbyte.logs",
        "magicbyte.following",
        "magicbyte.commands",
        "magicbyte.predicates",
        "magicbyte.scanning",
    },
    {"magicbyte"},
    {"magicbyte.cli", "magicbyte.spark"},
    {"magicbyte.__main__", "pyspark_magicbyte"},
]
LAYER = {prefix: number for number, layer in enumerate(LAYERS) for prefix in layer}


def name_of(path: Path) -> str:
    parts = path.relative_to(PYTHON).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in sorted(PYTHON.rglob("*.py"))}
MODULES = {*FILES, "magicbyte._core", "magicbyte.compat._core"}


def imported_modules(path: Path) -> Iterator[str]:
    """The modules of our packages that a file imports, wherever the import is."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            # `from package import module` imports the module, `from module import name` a name in it.
            candidates = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [one if one in MODULES else str(node.module) for one in candidates]
        else:
            continue
        yield from (name for name in names if name in MODULES)


IMPORTS = {name: set(imported_modules(path)) - {name} for name, path in FILES.items()}


def layer_of(module: str) -> int:
    prefix = module
    while prefix not in LAYER:
        prefix = prefix.rpartition(".")[0]
    # The package itself is a layer; a new module in it has none yet.
    assert prefix != "magicbyte" or module == "magicbyte", f"{module} is in no layer"
    return LAYER[prefix]


def test_every_file_is_found() -> None:
    assert len(FILES) > 80
    assert "magicbyte.model" in IMPORTS["magicbyte.log"]
    # An import inside a function.
    assert "magicbyte.commands" in IMPORTS["magicbyte"]


def test_no_cycles() -> None:
    try:
        TopologicalSorter(IMPORTS).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


@pytest.mark.parametrize("module", FILES)
def test_imports_point_downwards(module: str) -> None:
    upward = {one for one in IMPORTS[module] if layer_of(one) > layer_of(module)}
    assert not upward


def test_layers_side_by_side_are_independent() -> None:
    """The command line runs on Spark without the data source, which in turn needs no command line."""
    for module, imports in IMPORTS.items():
        for one, other in (("magicbyte.cli", "magicbyte.spark"), ("magicbyte.spark", "magicbyte.cli")):
            if module.startswith(one):
                assert not [name for name in imports if name.startswith(other)], module


def test_the_package_alone_loads_nothing_else() -> None:
    """`import magicbyte` is cheap, and works where none of the optional packages are installed."""
    program = "import sys; before = {*sys.modules}; import magicbyte; print(*({*sys.modules} - before))"
    environment = {**os.environ, "PYTHONPATH": str(PYTHON)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    loaded = done.stdout.split()
    assert "magicbyte.log" in loaded
    assert not [name for name in loaded if name.startswith(("magicbyte.jobs", "magicbyte.cli"))]
    assert {name.partition(".")[0] for name in loaded} <= {*sys.stdlib_module_names, "magicbyte"}


COMMANDS = [
    ["--help"],
    ["ingest", "--help"],
    ["--version"],
    ["verify", "--engine", "local", "--json", "samples/orders-0"],
    ["dump", "samples/orders-0"],
    ["records", "samples/orders-0"],
    ["explain", "samples/orders-0"],
    ["stats", "--fields", "samples/orders-0"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_commands_load_only_what_they_need(arguments: list[str]) -> None:
    """pandas takes longer to load than most commands take; help needs no columns either."""
    program = (
        "import sys\nfrom magicbyte.cli.app import run\ncode = run(sys.argv[1:])\n"
        "print(code, *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=PYTHON.parent,
        env={**os.environ, "PYTHONPATH": str(PYTHON)},
    )
    code, *loaded = done.stderr.splitlines()[-1].split()
    assert code in ("0", "1"), done.stderr
    heavy = {"pandas", "pyspark"}
    if "--help" in arguments or "--version" in arguments:
        heavy |= {"duckdb", "pyarrow", "rich"}
    assert not heavy & {*loaded}
