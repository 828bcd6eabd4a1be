"""A web server that answers with ranges of files, as every common one does."""

from __future__ import annotations

import http.server
import io
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any


@contextmanager
def web_server(directory: Path) -> Iterator[Any]:
    """Serves a directory; after `ranges = False`, without ranges."""
    handler = partial(_Ranges, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.ranges = True  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class _Ranges(http.server.SimpleHTTPRequestHandler):
    def send_head(self) -> Any:
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted is None or not self.server.ranges:  # type: ignore[attr-defined]
            return super().send_head()
        path = self.translate_path(self.path)
        start, end = int(wanted[1]), int(wanted[2]) + 1
        size = os.path.getsize(path)
        data = Path(path).read_bytes()[start:end]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{start + len(data) - 1}/{size}")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Last-Modified", self.date_time_string(int(os.stat(path).st_mtime)))
        self.end_headers()
        return io.BytesIO(data)

    def log_message(self, *_: object) -> None:
        """Says nothing."""
