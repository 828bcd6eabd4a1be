"""The windows of keys in the lines of `magicbyte records`: fields after those that the core writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magicbyte import _core
    from magicbyte.cli.typed_text import TextPiece

__all__ = ["csv_header", "windowed_lines"]


def csv_header(header: bytes, windows: Iterable[str]) -> bytes:
    """The first line of CSV, with the names of the windows' times."""
    return _with_cells(header, windows)


def windowed_lines(writer: _core.LineWriter, piece: TextPiece, *, is_csv: bool) -> Iterator[bytes]:
    """The lines of rows, as JSON or CSV, with the windows of their keys."""
    lines = writer.lines(piece.rows).splitlines(keepends=True)
    columns = [times.to_pylist() for times in piece.windows.values()]
    for line, times in zip(_csv_rows(lines) if is_csv else lines, zip(*columns, strict=True), strict=True):
        if is_csv:
            yield _with_cells(line, ("" if time is None else str(time) for time in times))
        else:
            fields = (
                f', "{name}": {"null" if time is None else time}'
                for name, time in zip(piece.windows, times, strict=True)
            )
            yield line.removesuffix(b"}\n") + "".join(fields).encode() + b"}\n"


def _csv_rows(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The rows of CSV, of which a quoted cell may have several lines."""
    row: list[bytes] = []
    in_quotes = False
    for line in lines:
        row.append(line)
        # A quote in a cell is doubled, so that it does not matter here.
        in_quotes ^= line.count(b'"') % 2 == 1
        if not in_quotes:
            yield b"".join(row)
            row.clear()


def _with_cells(line: bytes, cells: Iterable[str]) -> bytes:
    """A line of CSV with more cells; it ends with CRLF or, on a terminal, with LF."""
    text = line.rstrip(b"\r\n")
    return text + "".join(f",{cell}" for cell in cells).encode() + line[len(text) :]
