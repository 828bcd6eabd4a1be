"""The command line: `magicbyte COMMAND`, a module a command; `magicbyte --help` lists them.

Exit codes: 0 clean, 1 done and problems were found, 2 usage, 3 could not finish or the sum does not
add up.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from magicbyte.cli.exits import FAILED, USAGE
from magicbyte.cli.extras import missing_extra

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line (by default with this process's arguments); returns the exit code."""
    try:
        from magicbyte.cli.app import run
    except ModuleNotFoundError as error:
        message = missing_extra(error)
        if message is None:
            raise
        print(message, file=sys.stderr)  # noqa: T201 (a name of ours, and nothing else is loaded)
        return USAGE
    except KeyboardInterrupt:
        print("magicbyte: interrupted", file=sys.stderr)  # noqa: T201 (as above)
        return FAILED
    return run(arguments)
