"""Web servers and buckets that name directories, pages and keys without end, or names that are no paths."""

from __future__ import annotations

import http.server
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from magicbyte import RecordsBuilder
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.storage import objects, remote, web
from magicbyte.storage.backend import ODD_KEY, ignored_entry, is_odd
from magicbyte.storage.mounts import mount
from magicbyte.storage.objects import ObjectStore
from magicbyte.storage.options import StorageOptions

LOG = f"{0:020}.log"


def segment() -> bytes:
    builder = RecordsBuilder()
    builder.append(0, 1_700_000_000_000, b"k", b"v")
    return bytes(builder.build())


@contextmanager
def server(answer: Callable[[str], tuple[str, bytes]]) -> Iterator[tuple[str, list[str]]]:
    """A server that answers paths with a type and bytes: its address, and the paths that were asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            asked.append(self.path)
            kind, body = answer(self.path)
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    threading.Thread(target=running.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{running.server_port}", asked
    finally:
        running.shutdown()
        running.server_close()


def links(*names: str) -> tuple[str, bytes]:
    return "text/html", "".join(f'<a href="{name}">x</a>' for name in names).encode()


@pytest.mark.parametrize("names", [["d/"], ["c/", "d/"]], ids=["a chain", "a tree"])
def test_directories_without_end(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_MAX_WITHOUT_FILES", 20)
    with server(lambda path: links(*names)) as (url, asked):
        mount([url])
        with pytest.raises(OSError, match="20 directories in a row have no file: give one further down"):
            find_inputs([url])
        assert len(asked) <= 22


def test_directories_with_files_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_MAX_DIRECTORIES", 20)

    def answer(path: str) -> tuple[str, bytes]:
        return ("text/plain", b"x") if path.endswith("README") else links("d/", "README")

    with server(answer) as (url, asked):
        mount([url])
        with pytest.raises(OSError, match="more than 20 directories"):
            find_inputs([url])
        assert len(asked) <= 42


def test_a_page_of_many_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "_MAX_LINKS", 100)
    with server(lambda path: links(*(f"x{number}/" for number in range(101)))) as (url, asked):
        mount([url])
        with pytest.raises(OSError, match="its page has more than 100 links"):
            find_inputs([url])
        assert len(asked) == 1


def test_names_that_are_no_paths_are_ignored_with_a_reason() -> None:
    def answer(path: str) -> tuple[str, bytes]:
        if path.endswith(".log"):
            return "application/octet-stream", segment()
        odd = ("%2e%2e/", "%2e%2e", "%2e/", "%00/", f"a%0Ab-0/{LOG}", "a%0Ab-0/", f"%1b{LOG}", "%7f")
        return links(*odd, "t-0/") if path == "/" else links(LOG, *odd)

    with server(answer) as (url, _):
        mount([url])
        (listing,) = find_inputs([url]).listings
    assert listing["path"] == f"{url}/t-0"
    ignored = {Path(one["file"]).name for one in listing["ignored"]}
    assert ignored >= {"%2E%2E", "a%0Ab-0%2F"}
    assert len(listing["segments"]) == 1


@pytest.mark.parametrize("name", ["", ".", "..", "a\nb", "\x00", "\x1b]0;x\x07", "\x7f"])
def test_odd_names(name: str) -> None:
    assert is_odd(name)
    shown = ignored_entry(name)
    assert not is_odd(shown.name)
    assert "/" not in shown.name
    assert not shown.is_directory


def test_names_that_are_not_odd() -> None:
    assert not any(map(is_odd, ("a", "...", ".a", "größe", "a b", "%2E%2E", LOG)))


def listing(keys: list[str], following: int | None) -> tuple[str, bytes]:
    contents = "".join(
        f"<Contents><Key>{key}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
        f"<ETag>&quot;1&quot;</ETag><Size>70</Size></Contents>"
        for key in keys
    )
    more = "" if following is None else f"<NextContinuationToken>{following}</NextContinuationToken>"
    truncated = "false" if following is None else "true"
    return "application/xml", (
        '<?xml version="1.0"?><ListBucketResult><Name>b</Name>'
        f"<IsTruncated>{truncated}</IsTruncated>{more}{contents}</ListBucketResult>"
    ).encode()


def bucket(url: str, **options: str) -> ObjectStore:
    credentials = {"access_key_id": "id", "secret_access_key": "key", "region": "us-east-1"}
    more = {"endpoint": url, "allow_http": "true", "max_retries": "0", **credentials, **options}
    return ObjectStore("s3://b", StorageOptions(more))


def page_of(path: str) -> int:
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)
    return int(query.get("continuation-token", ["0"])[0])


def endless(path: str) -> tuple[str, bytes]:
    page = page_of(path)
    return listing([f"logs/t-0/{number:020}.log" for number in range(page * 100, page * 100 + 100)], page + 1)


def test_pages_of_a_bucket_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_LISTING_SECONDS", 1)
    with server(endless) as (url, asked):
        store = bucket(url, max_objects="2000")
        with pytest.raises(OSError, match=r"more than 2000 objects are below it.*max_objects"):
            store.tree("logs")
        with pytest.raises(OSError, match="more than 2000 objects"):
            store.files("logs")
        assert len(asked) < 80
        with pytest.raises(OSError, match="its listing has no end within 1 s"):
            store.list("logs")


@pytest.mark.parametrize("key", ["logs/../up-0/x", "logs//d-0/x", "logs/a&#10;b-0/x", "logs/./p-0/x"])
def test_a_key_that_is_no_path_costs_only_its_directory(key: str) -> None:
    with server(lambda path: listing(["logs/ok-0/x", key], None)) as (url, _):
        store = bucket(url)
        assert store.tree("logs") is None
        with pytest.raises(OSError, match=ODD_KEY) as caught:
            store.list("logs")
        assert "remove the object" in str(caught.value)
