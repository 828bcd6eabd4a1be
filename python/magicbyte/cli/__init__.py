"""The command line: `magicbyte COMMAND`, a module a command; `magicbyte --help` lists them.

Exit codes: 0 clean, 1 done and problems were found, 2 usage, 3 could not finish or the sum does not
add up.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]

# The base install needs no other package: what a command needs beyond it is named when it is missing.
_EXTRAS = {"click": "cli", "rich": "cli", "pyarrow": "cli", "pyspark": "spark"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line (by default with this process's arguments); returns the exit code."""
    try:
        from magicbyte.cli.app import run

        return run(arguments)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRAS:
            raise
        print(f"{missing} is missing: pip install 'magicbyte[{_EXTRAS[missing]}]'", file=sys.stderr)
        return 2
