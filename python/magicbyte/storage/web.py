"""Web servers, through obstore. A directory is read from the page of links that most servers make of one."""

from __future__ import annotations

import errno
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import obstore
from obstore.store import HTTPStore

from magicbyte.storage.backend import Entry, ignored_entry, is_odd
from magicbyte.storage.objects import (
    as_os_errors,
    client_options,
    entry_of,
    read_object,
    read_object_range,
    retry_config,
)
from magicbyte.storage.options import StorageOptions

__all__ = ["WebServer"]

_MAX_PAGE = 64 << 20
_MAX_LINKS = 50_000
"""Links of a page: each may take a request."""
_NO_RANGES = "the server does not answer with ranges of files (it ignores the header Range)"


class WebServer:
    """The files of a web server."""

    def __init__(self, url: str, options: StorageOptions) -> None:
        self._url = url
        client: Any = {"allow_http": True, **client_options(options)}
        unknown = set(options) - set(client) - {"max_retries", "retry_timeout"}
        if unknown:
            raise ValueError(f"storage options that no web server has: {', '.join(sorted(unknown))}")
        with as_os_errors(url):
            self._store: Any = HTTPStore.from_url(
                url, client_options=client, retry_config=retry_config(options)
            )

    def tree(self, directory: str) -> dict[str, list[Entry]] | None:
        """See `Backend.tree`."""
        return None

    def list(self, directory: str) -> list[Entry]:
        """See `Backend.list`: one request, and one for each file."""
        page = _Links(f"{self._url}/{directory}".rstrip("/") + "/")
        below = f"{directory}/" if directory else ""
        page.feed(read_object(self._store, below, _MAX_PAGE).decode("utf-8", "replace"))
        odd = [ignored_entry(name) for name in page.names if is_odd(name.rstrip("/"))]
        names = [name for name in page.names if not is_odd(name.rstrip("/"))]
        directories = [Entry(name.rstrip("/"), True) for name in names if name.endswith("/")]
        files = [self._head(below + name) for name in names if not name.endswith("/")]
        return directories + files + odd

    def examine(self, path: str) -> Entry:
        """See `Backend.examine`: a page of links is a directory. The response is not read further."""
        with as_os_errors(path):
            result = obstore.get(self._store, path)
            if str(result.attributes.get("Content-Type", "")).startswith("text/html"):
                return Entry(path.rpartition("/")[2], True)
            return entry_of(result.meta)

    def _head(self, path: str) -> Entry:
        with as_os_errors(path):
            return entry_of(obstore.head(self._store, path))

    def read(self, path: str, limit: int) -> bytes:
        """See `Backend.read`."""
        return read_object(self._store, path, limit)

    def file_system(self, path: str) -> tuple[Any, str]:
        """See `Backend.file_system`."""
        raise OSError(errno.ENOTSUP, "tables are not read from web servers", path)

    def read_range(self, path: str, version: str | None, start: int, end: int) -> bytes:
        """See `Backend.read_range`."""
        try:
            return read_object_range(self._store, path, version, start, end)
        except OSError as error:
            if error.errno == errno.ENOTSUP:
                raise OSError(errno.ENOTSUP, _NO_RANGES, path) from None
            raise


class _Links(HTMLParser):
    """The names directly below a page that the page links to; those of directories end with a slash."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        parts = urlsplit(url)
        self._host, self._top = parts.netloc, unquote(parts.path)
        self._links = 0
        self.names: dict[str, None] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href") if tag == "a" else None
        if not href:
            return
        self._links += 1
        if self._links > _MAX_LINKS:
            raise OSError(errno.EFBIG, f"its page has more than {_MAX_LINKS} links", self._url)
        target = urlsplit(urljoin(self._url, href))
        if target.query or target.netloc != self._host:
            return
        path = unquote(target.path)
        name = path.removeprefix(self._top)
        if path.startswith(self._top) and name.strip("/") and "/" not in name.rstrip("/"):
            self.names[name] = None
