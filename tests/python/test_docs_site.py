"""The documentation's pages: built without warnings, and readable as Markdown."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import magicbyte
import pytest

ROOT = Path(__file__).parents[2]


def copy(tree: Path) -> None:
    """What the pages are made from, so that this checkout's own pages stay as they are."""
    for page in ROOT.glob("*.md"):
        shutil.copy(page, tree)
    for name in (
        "mkdocs.yml",
        "Cargo.toml",
        "benches/README.md",
        "crates/magicbyte-protocol/examples/proxy.rs",
        "scripts/docs_site.py",
        "scripts/metadata.py",
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    shutil.copytree(ROOT / "docs", tree / "docs")
    for name in ("python", "examples"):
        (tree / name).symlink_to(ROOT / name)


def build(tree: Path) -> subprocess.CompletedProcess[str]:
    """Builds the pages of a tree."""
    command = [sys.executable, str(tree / "scripts/docs_site.py")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("site")
    copy(tree)
    done = build(tree)
    assert done.returncode == 0, done.stdout + done.stderr
    return tree / "target/site"


def test_every_page_has_a_twin(site: Path) -> None:
    pages = {path.relative_to(site).with_suffix(".md") for path in site.rglob("*.html")}
    twins = {path.relative_to(site) for path in site.rglob("*.md")}
    assert len(twins) > 25
    # The page of a README is the index of its folder.
    twins = {path.with_name(path.name.replace("README", "index")) for path in twins}
    assert pages - {Path("404.md")} == twins


def test_the_index_leads_to_every_page(site: Path) -> None:
    text = (site / "llms.txt").read_text()
    links = re.findall(r"^- \[.+\]\((.+)\): .+[.:]$", text, re.M)
    assert {Path(link) for link in links} == {path.relative_to(site) for path in site.rglob("*.md")}
    assert len(links) == text.count("\n- ")


def test_the_reference_has_every_name(site: Path) -> None:
    kinds = (inspect.isclass, inspect.isroutine)
    names = {name for name in magicbyte.__all__ if any(kind(getattr(magicbyte, name)) for kind in kinds)}
    for suffix, heading in (("md", r"^## (\w+)$"), ("html", r'<h\d id="(?:magicbyte\.)?(\w+)"')):
        text = "".join((site / f"reference/{page}.{suffix}").read_text() for page in ("functions", "classes"))
        assert names <= {*re.findall(heading, text, re.M)}
    assert "--max-decompressed-bytes" in (site / "reference/commands.md").read_text()


def test_pages_fetch_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|img|link rel="(?:stylesheet|icon)")[^>]* (?:src|href)="([^"]*)"', page.read_text()
        )
        assert loaded
        assert [address for address in loaded if "//" in address] == []


def test_links_of_the_readme_stay_on_the_site(tmp_path: Path) -> None:
    copy(tmp_path)
    sources = shutil.ignore_patterns("src", "tests", "examples")
    shutil.copytree(ROOT / "crates", tmp_path / "crates", ignore=sources, dirs_exist_ok=True)
    for name in (
        "pyproject.toml",
        "CITATION.cff",
        "Cargo.lock",
        "fuzz/Cargo.lock",
        "benches/peers/rust/Cargo.lock",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    address = "https://github.com/example/magicbyte"
    command = [sys.executable, str(tmp_path / "scripts/metadata.py"), "--repository", address]
    subprocess.run(command, check=True)
    done = build(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "target/site/index.html").read_text()
    assert f"{address}/blob" not in page
    assert f'href="{address}"' in page


@pytest.mark.parametrize("link", ["nowhere.md", "damage.md#nowhere"])
def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path, link: str) -> None:
    copy(tmp_path)
    with (tmp_path / "docs/outputs.md").open("a") as page:
        page.write(f"\n[here]({link})\n")
    done = build(tmp_path)
    assert done.returncode == 1
    assert "docs/outputs.md" in done.stderr
    assert "nowhere" in done.stderr
