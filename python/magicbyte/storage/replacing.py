"""Local files that are replaced as a whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

__all__ = ["replacing"]


@contextmanager
def replacing(path: str) -> Iterator[IO[str]]:
    """A new text file, which takes the place of `path` at the end, or of the file that a link there leads to.
    After an error, nothing is left of it, and `path` is as it was.
    """
    target = os.path.realpath(path)
    directory = os.path.dirname(target)
    with tempfile.NamedTemporaryFile("w", dir=directory, delete=False, encoding="utf-8") as file:
        try:
            yield file.file
            file.close()
            os.replace(file.name, target)
        except BaseException:
            file.close()
            os.unlink(file.name)
            raise
