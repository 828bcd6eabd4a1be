"""A segment that comes through a pipe: `-`, `/dev/stdin`, a FIFO, or `<(...)` of a shell."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from typing import BinaryIO

import click

from magicbyte import _core
from magicbyte.cli.terminal import NAMES

__all__ = ["saved"]

_MOST_BYTES = 2 << 30
"""The maximum size of a segment: positions in it have 31 bits."""
_BLOCK_BYTES = 1 << 20
_ENDINGS = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}
"""The suffix of a compressed segment, by its first bytes."""


def saved(path: str) -> str:
    """The path of a temporary file with the content of a pipe; the same path if it is not a pipe.

    The file is removed when the command ends, and output has the name of the pipe instead of its path. A FIFO
    with the name of a broker's file is not read: opening it could wait for ever, and nobody puts one into a
    partition's directory on purpose.

    Raises:
        UsageError: the pipe has more than 2 GiB or was given before, or there is no standard input.
        OSError: the pipe cannot be read, or its content cannot be written.

    """
    if path in NAMES.values():
        raise click.UsageError(f"{path} is given twice, but a pipe can be read only once")
    if path == "-":
        if sys.stdin is None:
            raise click.UsageError("-: there is no standard input")
        return _save(path, sys.stdin.buffer)
    if not _is_pipe(path) or _is_brokers(os.path.basename(path)):
        return path
    with open(path, "rb", buffering=0) as pipe:
        return _save(path, pipe)


def _is_brokers(name: str) -> bool:
    """True if a broker gives this name to a file: a segment, or a file beside a segment."""
    return _core.is_partition("t-0", [name])


def _is_pipe(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or (stat.S_ISCHR(mode) and path.startswith(("/dev/stdin", "/dev/fd/")))


def _save(name: str, pipe: BinaryIO) -> str:
    top = tempfile.mkdtemp(prefix="magicbyte-")
    context = click.get_current_context(silent=True)
    if context is not None:
        context.find_root().call_on_close(lambda: shutil.rmtree(top, ignore_errors=True))
    # The directory's name is that of a partition.
    directory = os.path.join(top, "stdin-0")
    os.mkdir(directory)
    block = _read(pipe)
    ending = next((ending for start, ending in _ENDINGS.items() if block.startswith(start)), "")
    path = os.path.join(directory, f"stdin.log{ending}")
    NAMES[path] = name
    size = 0
    with open(path, "xb") as file:
        while block:
            size += file.write(block)
            if size > _MOST_BYTES:
                raise click.UsageError("more than 2 GiB come through the pipe, which no segment has")
            block = _read(pipe)
    return path


def _read(pipe: BinaryIO) -> bytes:
    """A full block, unless the pipe ends."""
    block = b""
    while len(block) < _BLOCK_BYTES and (more := pipe.read(_BLOCK_BYTES - len(block))):
        block += more
    return block
