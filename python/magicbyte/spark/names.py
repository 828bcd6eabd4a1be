"""Names in Spark: its options and columns are in camel case."""

from __future__ import annotations

__all__ = ["camel_case", "spark_name"]


def camel_case(name: str) -> str:
    """`max_decompressed_bytes` as `maxDecompressedBytes`."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def spark_name(flag: str) -> str:
    """The option for a flag: `--max-decompressed-bytes` as `maxDecompressedBytes`."""
    return camel_case(flag.removeprefix("--").replace("-", "_"))
