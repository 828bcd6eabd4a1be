"""Rows of the table `records` as text."""

from typing import Self, final

@final
class LineWriter:
    """Writes rows of the table `records` as JSON lines."""

    def __new__(cls, *, key_format: str = "utf-8", value_format: str = "utf-8") -> Self:
        """Formats are `utf-8` (invalid bytes show as U+FFFD), `hex` and `base64`.

        Values of headers are written as values are. Invisible characters are escaped.
        """
    def lines(self, rows: object) -> bytes:
        """The lines of an Arrow batch, in UTF-8.

        An object has a field for each column. `timestamp` is in milliseconds, -1 for none: the column
        `timestampMillis`, or `timestamp` without that.

        Raises:
            ValueError: names a column that the table does not have, or that has another type there.

        """
