"""The values of options as text: the text that each kind of value accepts, and how a default is shown.

>>> from magicbyte.options.values import SIZE
>>> SIZE.parse("64MiB"), SIZE.show(64 << 20)
(67108864, '64MiB')
"""

from __future__ import annotations

import math
import numbers
import operator
import os
import re
import reprlib
from collections.abc import Hashable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, get_args

from magicbyte import _core
from magicbyte.enums import Compression
from magicbyte.errors import Error
from magicbyte.partition_files import format_partition_metadata

__all__ = [
    "CONTENT",
    "COUNT",
    "DIRECTORIES",
    "EXPRESSION",
    "FILE",
    "LEVEL",
    "MILLIS",
    "NAMED_TOPIC_IDS",
    "OFFSET",
    "ONLY_TOPIC",
    "PARTITIONS",
    "PORTS",
    "PROPERTIES",
    "RECORD_SIZE",
    "SEGMENT_SIZE",
    "SIZE",
    "TIME",
    "TOPIC_IDS",
    "Codec",
    "Content",
    "Directories",
    "File",
    "Kind",
    "Number",
    "OneOf",
    "Real",
    "Repeated",
    "Seconds",
    "Size",
    "check_topic_id",
    "items",
    "text_value",
    "words",
]

_MAX = 1 << 62
"""The sum of two such numbers still fits in 64 bits."""
_MAX_PARTITIONS = 1 << 20
_SECONDS = range(10**9, 10**11)
"""Times that are meant in seconds, as `date +%s` prints them: from 2001 to 5138. In milliseconds they are
from 1970 to 1973, before there was Kafka."""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))

ONLY_TOPIC = ""
"""Stands for the only topic that a job reads, where a caller may leave out its name."""


class Kind:
    """A kind of value; here text as it is.

    Args:
        metavar: the placeholder for such a value in `--help`.

    """

    name = "text"
    texts = ""
    """A sentence for `--help`: the texts that stand for such a value."""
    unit = ""
    """A sentence for the help of keywords: the unit of a value."""

    def __init__(self, metavar: str | None = None) -> None:
        self.metavar = metavar

    def parse(self, text: str) -> Any:
        """The value that a text stands for.

        Raises:
            ValueError: if it stands for none; the message says what would.

        """
        return text

    def show(self, value: Any) -> str:
        """The text that stands for a value."""
        return str(value)

    def normal(self, value: Any) -> Any:
        """The form in which a value is kept, for all forms in which a caller may give it.

        Raises:
            ValueError: if it is no such value.

        """
        return text_value(value)


class File(Kind):
    """The path of a file that exists."""

    name = "file"


class Content(Kind):
    """The text of a file; the command line takes the path of one in UTF-8."""

    name = "file"
    unit = "The text itself, not a path."


def _shown(value: Any) -> str:
    """A value of a caller in a message: its repr, but for what has none, or a very long one."""
    try:
        return reprlib.repr(value)
    except Exception:  # a repr may raise anything; that of an int of 4,300 digits is a ValueError
        return f"a value of {type(value).__name__}"


def text_value(value: Any) -> Any:
    """The value itself. Raises ValueError if it is neither text nor a path."""
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f"{_shown(value)} is not text")
    return value


def items(value: Any) -> tuple[Any, ...]:
    """The items of a sequence; a text or bytes count as one value."""
    if isinstance(value, str | bytes | bytearray | memoryview):
        raise ValueError(
            f"{_shown(value)} is one {'text' if isinstance(value, str) else 'value'}: expected a sequence"
        )
    try:
        return tuple(value)
    except TypeError:
        raise ValueError(f"{_shown(value)} is not a sequence") from None


def _whole(value: Any) -> int:
    """A number of Python or NumPy as an int; booleans are none."""
    try:
        if isinstance(value, bool):
            raise TypeError
        # That of a subclass of int is an int of the subclass.
        return int.__int__(operator.index(value))
    except TypeError:
        raise ValueError(f"{_shown(value)} is not a whole number") from None


class Number(Kind):
    """A whole number in a range, both ends inclusive."""

    name = "integer"

    def __init__(self, least: int, most: int = _MAX, metavar: str = "N") -> None:
        super().__init__(metavar)
        self._least = least
        self._most = most

    def parse(self, text: str) -> int:
        """See `Kind.parse`."""
        stripped = text.strip()
        if re.fullmatch(r"[+-]?\d{1,20}", stripped) is None:
            raise ValueError(f"{text!r} is not a whole number of at most 20 digits")
        return self._in_range(int(stripped), stripped)

    def normal(self, value: Any) -> int:
        """See `Kind.normal`."""
        number = _whole(value)
        return self._in_range(number, _shown(number))

    def _in_range(self, number: int, shown: str) -> int:
        if number < self._least and self._most == _MAX:
            raise ValueError(f"{shown} is not at least {self._least:,}")
        if not self._least <= number <= self._most:
            raise ValueError(f"{shown} is not in the range from {self._least:,} to {self._most:,}")
        return number


class Seconds(Number):
    """A whole number of seconds; the value is in milliseconds."""

    unit = "In milliseconds."

    def parse(self, text: str) -> int:
        """See `Kind.parse`."""
        return super().parse(text) * 1000

    def normal(self, value: Any) -> int:
        """See `Kind.normal`."""
        milliseconds = _whole(value)
        # A part of a second counts as one: 1 ms is more than nothing.
        self._in_range(-(-milliseconds // 1000), f"{_shown(milliseconds)} ms, in seconds,")
        return milliseconds

    def show(self, value: int) -> str:
        """See `Kind.show`."""
        return str(value // 1000)


class Real(Kind):
    """A number of at least 0; with `positive`, above 0."""

    name = "number"

    def __init__(self, metavar: str, *, positive: bool = False) -> None:
        super().__init__(metavar)
        self._positive = positive

    def parse(self, text: str) -> float:
        """See `Kind.parse`."""
        try:
            number = float(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a number") from None
        return self._in_range(number, text)

    def normal(self, value: Any) -> float:
        """See `Kind.normal`."""
        if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
            raise ValueError(f"{_shown(value)} is not a number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        except ValueError:  # a signaling NaN
            number = math.nan
        return self._in_range(number, _shown(value))

    def _in_range(self, number: float, shown: str) -> float:
        if not math.isfinite(number):
            raise ValueError(f"{shown} is not a finite number")
        if number < 0 or (self._positive and number == 0):
            raise ValueError(f"{shown} is not {'above' if self._positive else 'at least'} 0")
        return number

    def show(self, value: float) -> str:
        """See `Kind.show`."""
        return f"{value:g}"


class Size(Kind):
    """A number of bytes: `1048576`, `512k`, `64MiB`, `1g`."""

    name = "size"
    unit = "In bytes."

    def __init__(self, most: int = _MAX, *, least: int = 0) -> None:
        super().__init__("SIZE")
        self._least = least
        self._most = most

    def parse(self, text: str) -> int:
        """See `Kind.parse`."""
        match = re.fullmatch(r"(\d{1,20})([kmg]?)(i?b)?", text.strip().lower())
        if match is None:
            raise ValueError(f"{text!r} is not a size such as 1048576, 512k, 64MiB or 1g")
        return self._in_range(int(match[1]) * _UNITS[match[2]], text)

    def normal(self, value: Any) -> int:
        """See `Kind.normal`."""
        number = _whole(value)
        return self._in_range(number, _shown(number))

    def _in_range(self, size: int, shown: str) -> int:
        if size > self._most:
            raise ValueError(f"{shown} is more than {self._most:,} bytes")
        if size < self._least:
            raise ValueError(f"{shown} is less than {self._least:,} bytes")
        return size

    def show(self, value: int) -> str:
        """See `Kind.show`."""
        for unit, name in _SIZES:
            if value and value % unit == 0:
                return f"{value // unit}{name}"
        return str(value)


_TIMESTAMP = Number(-_MAX, (1 << 63) - 1)


class Time(Kind):
    """A time in milliseconds or seconds since 1970, or in ISO 8601 (UTC unless it has an offset)."""

    name = "time"
    texts = "ISO 8601, or milliseconds or seconds since 1970."
    unit = "In milliseconds since 1970."

    def parse(self, text: str) -> int:
        """See `Kind.parse`; the value is in milliseconds."""
        stripped = text.strip()
        if re.fullmatch(r"-?\d{5,}", stripped):
            number = _TIMESTAMP.parse(stripped)
            return number * 1000 if number in _SECONDS else number
        try:
            time = datetime.fromisoformat(stripped)
        except ValueError:
            raise ValueError(f"{text!r} is neither milliseconds or seconds since 1970 nor ISO 8601") from None
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        return round(time.timestamp() * 1000)

    def normal(self, value: Any) -> int:
        """See `Kind.normal`."""
        return _TIMESTAMP.normal(value)


def _is_same(value: Any, known: Hashable) -> bool:
    """True if a caller means this value; True equals 1, and so does 1.0, but neither means 1."""
    if type(known) is not int:
        return isinstance(value, type(known)) and bool(value == known)
    try:
        return _whole(value) == known
    except ValueError:
        return False


class OneOf(Kind):
    """One of some words, each of which stands for a value."""

    name = "choice"

    def __init__(self, values: Mapping[str, Hashable]) -> None:
        super().__init__()
        self.values = values

    def parse(self, text: str) -> Hashable:
        """See `Kind.parse`; letter case does not matter."""
        for word, value in self.values.items():
            if word.lower() == text.lower():
                return value
        raise ValueError(f"{text!r} is not one of {', '.join(self.values)}")

    def show(self, value: Hashable) -> str:
        """See `Kind.show`."""
        return next(word for word, meant in self.values.items() if meant == value)

    def normal(self, value: Any) -> Any:
        """See `Kind.normal`."""
        for known in self.values.values():
            if _is_same(value, known):
                return known
        raise ValueError(f"{_shown(value)} is not one of {', '.join(self.values)}")


class Codec(OneOf):
    """The number of a codec, which a caller may also give by its name."""

    def __init__(self) -> None:
        super().__init__({codec.name.lower(): codec.value for codec in Compression})

    def normal(self, value: Any) -> Any:
        """See `Kind.normal`."""
        return self.parse(value) if isinstance(value, str) else super().normal(value)


def words(literal: Any) -> OneOf:
    """The words of a `Literal` type."""
    return OneOf({word: word for word in get_args(literal)})


class Repeated(Kind):
    """Any number of texts, which together are one value: here a tuple of them."""

    name = "texts"
    texts = "May be repeated."

    def parse_all(self, texts: Sequence[str]) -> Any:
        """The value that the texts stand for; errors are those of `Kind.parse`."""
        return tuple(map(self.parse, texts))

    def normal(self, value: Any) -> Any:
        """See `Kind.normal`."""
        return tuple(map(text_value, items(value)))


class Directories(Repeated):
    """The paths of directories that exist."""

    name = "directories"


_PARTITION = Number(0, (1 << 31) - 1)


class _Partitions(Repeated):
    """Numbers of partitions, a `frozenset` of them: `7`, `0,3`, `0-15`."""

    texts = "7, or 0,3, or 0-15; may be repeated."

    def parse_all(self, texts: Sequence[str]) -> frozenset[int]:
        numbers: set[int] = set()
        for text in texts:
            for part in text.split(","):
                match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part)
                first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
                if not first <= last < first + _MAX_PARTITIONS:
                    raise ValueError(f"{text!r} is not a list of partitions, such as 7, or 0,3, or 0-15")
                numbers.update(range(first, last + 1))
        return frozenset(numbers)

    def normal(self, value: Any) -> frozenset[int]:
        return frozenset(map(_PARTITION.normal, items(value)))


class _Numbers(Repeated):
    """A tuple of whole numbers."""

    def __init__(self, number: Number) -> None:
        super().__init__(number.metavar)
        self._number = number

    def parse(self, text: str) -> int:
        return self._number.parse(text)

    def normal(self, value: Any) -> tuple[int, ...]:
        return tuple(map(self._number.normal, items(value)))


class _Properties(Repeated):
    """A `dict` of `KEY=VALUE`."""

    def parse_all(self, texts: Sequence[str]) -> dict[str, str]:
        properties = {}
        for text in texts:
            key, equals, value = text.partition("=")
            if not key or not equals:
                raise ValueError("expected KEY=VALUE")
            properties[key] = value
        return properties

    def normal(self, value: Any) -> Any:
        try:
            properties = {} if value is None else dict(value)
        except (TypeError, ValueError):
            raise ValueError(f"{_shown(value)} is not a mapping") from None
        for text in (*properties, *properties.values()):
            if not isinstance(text, str):
                raise ValueError(f"{_shown(text)} is not text")
        return properties


class _TopicIds(_Properties):
    """A `dict` from topics to their ids: `TOPIC=ID`, or the ID alone for the only topic, if it may be."""

    unit = f"By topic; {ONLY_TOPIC!r} stands for the only topic."

    def __init__(self, *, named: bool = False) -> None:
        super().__init__("TOPIC=ID")
        self.texts = "May be repeated." if named else "A bare ID is that of the only topic; may be repeated."
        self._named = named

    def parse_all(self, texts: Sequence[str]) -> dict[str, str]:
        pairs = [text.rpartition("=") for text in texts]
        if not all(topic_id and (topic or not (equals or self._named)) for topic, equals, topic_id in pairs):
            raise ValueError("expected TOPIC=ID")
        for _, _, topic_id in pairs:
            # Checked here: the file is written only at the end of the job.
            check_topic_id(topic_id)
        return {topic or ONLY_TOPIC: topic_id for topic, _, topic_id in pairs}

    def normal(self, value: Any) -> Any:
        topic_ids = super().normal(value)
        for topic_id in topic_ids.values():
            check_topic_id(topic_id)
        return topic_ids


def check_topic_id(topic_id: str) -> None:
    """Raises ValueError if this cannot be the id of a topic."""
    try:
        _core.partition_metadata(format_partition_metadata(topic_id).decode())
    except Error:
        raise ValueError(f"{topic_id!r} is not a topic id: 22 characters of URL-safe base64") from None


EXPRESSION = Kind("EXPR")
FILE = File("FILE")
CONTENT = Content("FILE")
DIRECTORIES = Directories("DIR")
SIZE = Size()
SEGMENT_SIZE = Size((1 << 31) - 1)
RECORD_SIZE = Size((1 << 31) - 9, least=1)
TIME = Time("TIME")
OFFSET = Number(0, (1 << 63) - 1, "OFFSET")
MILLIS = Number(0, metavar="MS")
COUNT = Number(0)
LEVEL = Number(-(1 << 31), (1 << 31) - 1, "LEVEL")
PARTITIONS = _Partitions("N")
PORTS = _Numbers(Number(1, 65_535))
PROPERTIES = _Properties("KEY=VALUE")
TOPIC_IDS = _TopicIds()
NAMED_TOPIC_IDS = _TopicIds(named=True)
