"""Builds the pages of the documentation in target/site, with a Markdown twin of each and llms.txt.

usage: scripts/docs_site.py

The pages are laid out in target/site-pages as in the repository, so that their links are right in both. A
warning, such as a link that leads nowhere, is an error. The byte inspector, which `make inspector` builds, is
copied beside them.
"""

from __future__ import annotations

import inspect
import logging
import re
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import magicbyte
from click import Command, Context, Group
from magicbyte.cli.app import app
from metadata import ROOT, Metadata
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort
from reference_pages import reports_page, tables_page

PAGES = ROOT / "target" / "site-pages"
SITE = ROOT / "target" / "site"
INSPECTOR = ROOT / "target" / "inspector" / "inspector.html"
# After the pages and pictures come sources that pages link to.
SOURCES = (
    "*.md",
    "docs/**/*.md",
    "docs/**/*.svg",
    "docs/**/*.png",
    "benches/README.md",
    "python/magicbyte/expressions/functions.py",
    "examples/asyncio_client/*.py",
    "crates/magicbyte-protocol/examples/proxy.rs",
)


def main() -> int:
    """Builds everything; returns the exit code."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    if not INSPECTOR.exists():
        print(f"{INSPECTOR} is missing: make inspector", file=sys.stderr)
        return 1
    metadata = Metadata.read(ROOT)
    lay_out(metadata)
    config = load_config(str(ROOT / "mkdocs.yml"), strict=True, repo_url=metadata.repository)
    try:
        build(config)
    except Abort as error:
        print(error, file=sys.stderr)
        return 1
    # Of the classes, a page of mkdocstrings has only the names.
    (PAGES / "reference/classes.md").write_text(classes_page(described), encoding="utf-8")
    for page in PAGES.rglob("*.md"):
        shutil.copy(page, SITE / page.relative_to(PAGES))
    shutil.copy(INSPECTOR, SITE)
    (SITE / "llms.txt").write_text(index(config.nav, config.site_description), encoding="utf-8")
    return 0


def lay_out(metadata: Metadata) -> None:
    """Copies the repository's pages, and writes those of the reference."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for pattern in SOURCES:
        for source in ROOT.glob(pattern):
            page = PAGES / source.relative_to(ROOT)
            page.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, page)
    readme = PAGES / "README.md"
    readme.write_text(Metadata(metadata.version).readme(readme.read_text(encoding="utf-8")), encoding="utf-8")
    reference = PAGES / "reference"
    reference.mkdir()
    (reference / "commands.md").write_text(commands_page(), encoding="utf-8")
    (reference / "tables.md").write_text(tables_page(), encoding="utf-8")
    (reference / "reports.md").write_text(reports_page(), encoding="utf-8")
    (reference / "functions.md").write_text(functions_page(), encoding="utf-8")
    (reference / "classes.md").write_text(
        classes_page(lambda name: f"::: magicbyte.{name}\n"), encoding="utf-8"
    )


def commands_page() -> str:
    """The help of each command."""
    sections = [f"## {name}\n\n```text\n{text}\n```\n" for name, text in helps(app, "magicbyte", None)]
    return "\n".join(["# Commands\n", "What `--help` prints.\n", *sections])


def helps(command: Command, name: str, parent: Context | None) -> Iterator[tuple[str, str]]:
    """The name and the help of a command and of those below it."""
    with Context(command, info_name=name.rpartition(" ")[2], parent=parent, terminal_width=100) as context:
        yield name, command.get_help(context)
        if isinstance(command, Group):
            for below in command.list_commands(context):
                found = command.get_command(context, below)
                if found is not None and not found.hidden:
                    yield from helps(found, f"{name} {below}", context)


def functions_page() -> str:
    """The functions of the package. Those that run a job have the options of its command as keywords."""
    names = [name for name in magicbyte.__all__ if inspect.isroutine(getattr(magicbyte, name))]
    return "\n".join(
        ["# Python functions\n", "All of them are names of `magicbyte`.\n", *map(described, names)]
    )


def classes_page(section: Any) -> str:
    """The classes of the package, each as `section` of its name has it."""
    names = [name for name in magicbyte.__all__ if inspect.isclass(getattr(magicbyte, name))]
    return "\n".join(["# Python classes\n", "All of them are names of `magicbyte`.\n", *map(section, names)])


def described(name: str) -> str:
    """A name of the package with its docstring, and the members of a class with theirs."""
    found = getattr(magicbyte, name)
    lines = [f"## {name}\n", documented(name, found)]
    for member, value in vars(found).items() if inspect.isclass(found) else ():
        if not member.startswith("_") and inspect.getdoc(value):
            lines += [f"### {name}.{member}\n", documented(f"{name}.{member}", value)]
    return "\n".join(lines)


def documented(name: str, found: Any) -> str:
    """The signature, if there is one, and the docstring as it is."""
    try:
        signature = str(inspect.signature(found))
    except (TypeError, ValueError):
        signature = ""
    # Annotations of a module with postponed ones are texts.
    signature = re.sub(r"'([^']*)'(?=[,)=\s]|$)", r"\1", signature)
    return f"```text\n{name}{signature}\n\n{inspect.getdoc(found) or ''}\n```\n"


def index(nav: list[Any], description: str) -> str:
    """The pages as llms.txt lists them: a title, a link to the Markdown, and the first sentence."""
    lines = ["# magicbyte\n", f"> {description}\n"]
    for entry in nav:
        ((title, below),) = entry.items()
        pages = [below] if isinstance(below, str) else below
        lines += [f"## {title}\n", *map(listed, pages), ""]
    return "\n".join(lines)


def listed(entry: str | dict[str, str]) -> str:
    """A line of llms.txt."""
    page = entry if isinstance(entry, str) else next(iter(entry.values()))
    text = (PAGES / page).read_text(encoding="utf-8")
    title, _, rest = text.removeprefix("# ").partition("\n")
    prose = next((part for part in rest.split("\n\n") if re.match(r"\s*(\w|`\w|\[)", part)), "")
    sentence = re.split(r"(?<=[.:]) ", " ".join(prose.split()))[0]
    return f"- [{title}]({page}): " + re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", sentence)


if __name__ == "__main__":
    sys.exit(main())
