"""The experimental magic 3, for `magicbyte.magic3`."""

from typing_extensions import Buffer

def magic3_encode(batches: Buffer, ideas: int, compression: int, *, level: int | None = None) -> bytes:
    """Writes whole magic 2 batches as experimental ones that follow the ideas, with a codec."""

def magic3_to_magic_2(batches: Buffer, *, max_decompressed_bytes: int = ...) -> bytes:
    """Writes experimental batches as magic 2, each with its codec."""

def magic3_validate(batches: Buffer, *, max_decompressed_bytes: int = ...) -> list[tuple[int, int, int, int]]:
    """Checks what a broker checks of a producer's batch: for each one records, largest timestamp, records
    without a key, bytes decompressed."""

def compare_format(
    batches: Buffer, magic: int, ideas: int, compression: int, *, level: int | None = None
) -> str:
    """Writes uncompressed magic 2 batches in a format, reads and validates them: a Comparison."""
