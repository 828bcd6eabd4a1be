"""The packages that commands need; the base install has no dependencies."""

from __future__ import annotations

__all__ = ["missing_extra"]

_INSTALL = "pip install 'magicbyte[{}]'"
_EXTRAS = {
    "click": _INSTALL.format("cli"),
    "rich": _INSTALL.format("cli"),
    "duckdb": _INSTALL.format("sql"),
    "httpx": _INSTALL.format("registry"),
    "pyarrow": _INSTALL.format("cli"),
    "deltalake": _INSTALL.format("delta"),
    "pyiceberg": _INSTALL.format("iceberg"),
    "sqlalchemy": _INSTALL.format("iceberg"),
    "pandas": _INSTALL.format("spark"),
    "pyspark": f"{_INSTALL.format('spark')}, or leave out --engine spark",
}


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """Names the missing package and how to install it; None if it belongs to none of our extras."""
    missing = (error.name or "").partition(".")[0]
    return f"{missing} is missing: {_EXTRAS[missing]}" if missing in _EXTRAS else None
