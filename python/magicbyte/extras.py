"""The packages that some functions and commands need; the base install has no dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["missing_extra", "naming_extras"]

_INSTALL = "pip install 'magicbyte[{}]'"
_EXTRAS = {
    "click": _INSTALL.format("cli"),
    "rich": _INSTALL.format("cli"),
    "duckdb": _INSTALL.format("sql"),
    "httpx": _INSTALL.format("registry"),
    "polars": _INSTALL.format("polars"),
    "pyarrow": _INSTALL.format("arrow"),
    "deltalake": _INSTALL.format("delta"),
    "pyiceberg": _INSTALL.format("iceberg"),
    "sqlalchemy": _INSTALL.format("iceberg"),
    "pandas": _INSTALL.format("spark"),
    "pyspark": f"{_INSTALL.format('spark')}, or leave out --engine spark",
}
_OF_PYTHON = "No module named "


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """Names the missing package and how to install it; None if it belongs to none of our extras."""
    missing = (error.name or "").partition(".")[0]
    return f"{missing} is missing: {_EXTRAS[missing]}" if missing in _EXTRAS else None


@contextmanager
def naming_extras(caller: str, extra: str | None = None) -> Iterator[None]:
    """Makes Python's error for a package that is missing name the caller, and how to install the package.

    Args:
        caller: the function or argument that needs the package.
        extra: the extra that has everything it needs; by default, one that has the missing package.

    """
    try:
        yield
    except ModuleNotFoundError as error:
        message = missing_extra(error)
        if message is None or not str(error).startswith(_OF_PYTHON):
            raise
        if extra is not None:
            message = f"{error.name} is missing: {_INSTALL.format(extra)}"
        raise ModuleNotFoundError(f"{caller}: {message}", name=error.name) from None
