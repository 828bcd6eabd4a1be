"""Rows of the table `records` as text, and the selection of rows."""

from collections.abc import Sequence
from typing import Self, final

@final
class LineWriter:
    r"""Writes rows of the table `records` as lines of text.

    Args:
        format: `jsonl`, or `csv` by RFC 4180: headers as their JSON text, an empty field for null and
            `""` for an empty text.
        template: a format string of kcat instead: `%t` topic, `%p` partition, `%o` offset, `%T`
            timestamp (ms), `%k` key, `%K` its length, `%s` value, `%S` its length, `%R` that as four
            bytes, `%h` headers, `%%`; the escapes are `\n`, `\r`, `\t` and `\xNN`.
        key_format: `utf-8` (invalid bytes show as U+FFFD, but in a template they are written as they
            are), `hex`, `base64`, or `json`: documents are embedded. A key that is not JSON is null, and
            shown in the additional field `invalidKey`: as text, or in JSON lines as an object with their
            `base64` if they are not UTF-8. Not for a template.
        value_format: the same for values, with `invalidValue`. Values of headers are written as values
            are, for `json` as text.
        visible: escape the invisible characters of a record, for a terminal. In JSON they always are.
        null: the text that a template shows for a null key or value.

    Raises:
        ValueError: an option is unknown, or the template is malformed.

    """

    def __new__(
        cls,
        *,
        format: str = "jsonl",
        template: str | None = None,
        key_format: str = "utf-8",
        value_format: str = "utf-8",
        visible: bool = False,
        null: str = "",
    ) -> Self: ...
    def header(self, rows: object) -> bytes:
        """The text before the lines of rows with these columns: for CSV the line with their names."""
    def lines(self, rows: object) -> bytes:
        """The lines of an Arrow batch, in UTF-8 unless a template writes bytes.

        A line has a field for each column. `timestamp` is in milliseconds, -1 for none: the column
        `timestampMillis`, or `timestamp` without that.

        Raises:
            ValueError: names a column that the table does not have, that has another type there, or that a
                template needs.

        """

@final
class RowFilter:
    """Selects rows of the table `records` by key, and by a regular expression.

    A row has one of the keys, and a key or value that the pattern matches.

    Args:
        keys: None for any key; a record without a key matches no key.
        pattern: a regular expression of Rust's crate `regex`; `(?-u)` turns to bytes. It takes linear
            time. None for any key and value.

    Raises:
        ValueError: the pattern is malformed, or too large.

    """

    def __new__(cls, *, keys: Sequence[bytes] | None = None, pattern: str | None = None) -> Self: ...
    def mask(self, rows: object) -> bytes:
        """The selected rows of an Arrow batch: the bits of an Arrow array of booleans.

        Raises:
            ValueError: there is no column `key` or `value`, or it is neither binary nor text.

        """
