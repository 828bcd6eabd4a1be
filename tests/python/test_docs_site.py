"""The documentation's pages: built without warnings, and readable as Markdown."""

from __future__ import annotations

import functools
import inspect
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import magicbyte
import magicbyte.commands
import pytest
from devtools import Tab

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
        "scripts/reference_pages.py",
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    shutil.copytree(ROOT / "docs", tree / "docs")
    # The real one has tests of its own, for which it has to be compiled.
    (tree / "target/inspector").mkdir(parents=True)
    # With an icon, as the page itself has: a browser asks a server for one that no page of it names.
    (tree / "target/inspector/inspector.html").write_text(
        '<!DOCTYPE html><link rel="icon" href="data:,"><title>Byte inspector</title>'
    )
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
    assert pages - {Path("404.md"), Path("inspector.md")} == twins


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


def test_the_reference_has_tables_and_reports(site: Path) -> None:
    tables = (site / "reference/tables.md").read_text()
    assert re.findall(r"^## (\w+)$", tables, re.M) == [
        *(
            "records",
            "batches",
            "problems",
            "offsets",
            "share_offsets",
            "topics",
            "segments",
            "producers",
            "transactions",
        )
    ]
    assert "| `timestamp` | `timestamp[us, tz=UTC]` |" in tables
    reports = (site / "reference/reports.md").read_text()
    for name in {*magicbyte.commands.__all__} - {"serve"}:
        assert f"`{name}`" in reports
    report = magicbyte.verify(str(ROOT / "samples"))
    described = reports[reports.index("## VerifyReport") :]
    assert re.findall(r"^\| `(\w+)` \|", described[: described.index("\n## ", 1)], re.M) == list(report)


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site behind a server, since a search does not work from a disk."""
    handler = functools.partial(QuietHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with Tab(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


def test_every_page_opens_without_an_error(site: Path, address: str, tab: Tab) -> None:
    # The pages without the theme first: a browser asks once for an icon that is missing.
    pages = {*site.rglob("*.html")} - {site / "404.html"}
    for page in sorted(pages, key=lambda one: (one.name != "inspector.html", one)):
        tab.open(f"{address}/{page.relative_to(site)}")
        assert tab.problems == [], page
        assert [one for one in tab.requests if not one.startswith((address, "blob:", "data:"))] == [], page


def test_every_link_leads_somewhere(site: Path) -> None:
    """All of them, also those in HTML, to a page and to the place in it."""
    pages = {page: Links(page.read_text()) for page in site.rglob("*.html") if page.name != "404.html"}
    checked = 0
    for page, links in pages.items():
        for link in links.targets:
            address, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", address):
                continue
            target = (page.parent / unquote(address)).resolve() if address else page
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), (page, link)
            if anchor and target in pages:
                assert unquote(anchor) in pages[target].anchors | {"__codelineno"}, (page, link)
            checked += 1
    assert checked > 1000


class Links(HTMLParser):
    """The links of a page, and the places that links may lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {given[name] or "" for name in ("id", "name") if name in given}
        self.targets |= {given[name] or "" for name in ("href", "src") if given.get(name)}


SEARCH = """(words) => {
    const query = document.querySelector("[data-md-component=search-query]");
    query.focus();
    query.value = words;
    query.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
}"""


@pytest.mark.parametrize(("words", "page"), [("byte inspector", "inspector"), ("tombstone", "compaction")])
def test_the_search_finds_a_page(address: str, tab: Tab, words: str, page: str) -> None:
    tab.open(f"{address}/index.html")
    tab.evaluate("document.querySelector('[data-md-toggle=search]').click()")
    tab.evaluate(f"({SEARCH})({words!r})")
    found = "[...document.querySelectorAll('.md-search-result__link')].map((link) => link.href)"
    tab.until(f"{found}.some((link) => link.includes('{page}'))")
    assert tab.problems == []


def test_a_site_without_the_inspector_is_refused(tmp_path: Path) -> None:
    copy(tmp_path)
    (tmp_path / "target/inspector/inspector.html").unlink()
    done = build(tmp_path)
    assert (done.returncode, "make inspector" in done.stderr) == (1, True)


def test_pages_fetch_nothing_from_elsewhere(site: Path) -> None:
    for page in {*site.rglob("*.html")} - {site / "inspector.html"}:
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
