"""The command line: `magicbyte COMMAND`, one module per command; `magicbyte --help` lists them.

Exit codes: see `exits.py`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from magicbyte.cli.exits import INTERRUPTED, USAGE
from magicbyte.extras import missing_extra

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line (by default with this process's arguments); returns the exit code."""
    # Huge pages for the many small buffers of pyarrow's allocator cost memory, and time to clear them.
    os.environ.setdefault("MIMALLOC_ALLOW_THP", "0")
    # By default it reserves a gigabyte of addresses, which `ulimit -v` counts.
    os.environ.setdefault("MIMALLOC_ARENA_RESERVE", "64MiB")
    try:
        from magicbyte.cli.app import run
    except ModuleNotFoundError as error:
        message = missing_extra(error)
        if message is None:
            raise
        print(message, file=sys.stderr)  # noqa: T201 (the text is our own, and terminal.py is not loaded)
        return USAGE
    except KeyboardInterrupt:
        print("magicbyte: interrupted", file=sys.stderr)  # noqa: T201 (as above)
        return INTERRUPTED
    return run(arguments)
