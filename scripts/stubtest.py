"""Checks the stubs of the compiled modules, and of one in Python, against the modules, with mypy's stubtest.

stubtest checks each name in the module whose stub defines it, but the stubs in `_stubs/` have no modules at
run time. This script creates stand-ins with the contents of the compiled modules.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from magicbyte import _core
from magicbyte.compat import _core as dropins
from mypy import stubtest

STUBS = Path(__file__).parents[1] / "python" / "magicbyte" / "_stubs"


class StandIn(ModuleType):
    """Has every name of a compiled module but lists none, so a stub is checked only for its own names."""

    def __init__(self, name: str, compiled: ModuleType) -> None:
        super().__init__(name)
        self._compiled = compiled

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            raise AttributeError(name)
        return getattr(self._compiled, name)


def main() -> int:
    """Prints the differences; returns 1 if there are any."""
    # The last is not compiled, but its types are written for it.
    modules = [_core.__name__, dropins.__name__, "magicbyte.message.codec"]
    for stub in sorted(STUBS.glob("[!_]*.pyi")):
        compiled = dropins if stub.stem.startswith("compat_") else _core
        module = StandIn(f"magicbyte._stubs.{stub.stem}", compiled)
        sys.modules[module.__name__] = module
        modules.append(module.__name__)
    return stubtest.test_stubs(stubtest.parse_options(modules))


if __name__ == "__main__":
    sys.exit(main())
