"""What a command needs beyond the base install, which needs no other package."""

from __future__ import annotations

__all__ = ["missing_extra"]

_INSTALL = "pip install 'magicbyte[{}]'"
_EXTRAS = {
    "click": _INSTALL.format("cli"),
    "rich": _INSTALL.format("cli"),
    "pyarrow": _INSTALL.format("cli"),
    "pandas": _INSTALL.format("spark"),
    "pyspark": f"{_INSTALL.format('spark')}, or give --engine local",
}


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """What is missing and how to get it, if an extra of ours brings it."""
    missing = (error.name or "").partition(".")[0]
    return f"{missing} is missing: {_EXTRAS[missing]}" if missing in _EXTRAS else None
