"""Names in Spark: its options and columns are in camel case."""

from __future__ import annotations

__all__ = ["camel_case"]


def camel_case(name: str) -> str:
    """`max_decompressed_bytes` as `maxDecompressedBytes`."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
