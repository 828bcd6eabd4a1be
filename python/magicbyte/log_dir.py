r"""The files that a broker keeps in a directory of `log.dirs`, beside its partitions.

Four offset checkpoints (`OffsetCheckpointFile`), `meta.properties` (`MetaProperties`), and
`.kafka_cleanshutdown` (`CleanShutdownFileHandler`).

>>> import pathlib, tempfile
>>> file = pathlib.Path(tempfile.mkdtemp()) / "replication-offset-checkpoint"
>>> _ = file.write_text(format_offset_checkpoint({("orders", 0): 4711, ("orders", 1): 12}))
>>> read_offset_checkpoint(file)
{('orders', 0): 4711, ('orders', 1): 12}
>>> _ = file.write_text("0\n1\norders 0\n")
>>> try:
...     read_offset_checkpoint(file)
... except Error as error:
...     print(str(error).partition("checkpoint, ")[2])
line 3: expected `topic partition offset`, found 'orders 0'
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import TypeVar

from magicbyte import _core
from magicbyte.errors import Error, LimitExceededError

__all__ = [
    "CLEANER_OFFSET_CHECKPOINT",
    "CLEAN_SHUTDOWN",
    "LOG_START_OFFSET_CHECKPOINT",
    "META_PROPERTIES",
    "OFFSET_CHECKPOINTS",
    "RECOVERY_POINT_OFFSET_CHECKPOINT",
    "REPLICATION_OFFSET_CHECKPOINT",
    "format_offset_checkpoint",
    "parse_clean_shutdown",
    "parse_meta_properties",
    "parse_offset_checkpoint",
    "read_clean_shutdown",
    "read_meta_properties",
    "read_offset_checkpoint",
    "read_server_properties",
]

REPLICATION_OFFSET_CHECKPOINT = "replication-offset-checkpoint"
"""The high watermark of each replica: the end of the records that consumers could read."""
RECOVERY_POINT_OFFSET_CHECKPOINT = "recovery-point-offset-checkpoint"
"""The offset up to which each log was flushed: after a crash, a broker checks the data after it."""
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
"""The start of each log that does not start at its first segment's base offset (`DeleteRecords`)."""
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
"""The offset up to which the cleaner has compacted each log."""
OFFSET_CHECKPOINTS = (
    REPLICATION_OFFSET_CHECKPOINT,
    RECOVERY_POINT_OFFSET_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    CLEANER_OFFSET_CHECKPOINT,
)
META_PROPERTIES = "meta.properties"
"""The cluster and the node that the directory belongs to."""
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
"""Exists if the broker stopped by itself, so that its logs need no recovery."""

_SMALL_BYTES = 1 << 16
"""The largest `meta.properties` or `.kafka_cleanshutdown`; they have about 100 bytes."""
_SHOWN = 80
_INT = range(-(1 << 31), 1 << 31)
_LONG = range(-(1 << 63), 1 << 63)

_Content = TypeVar("_Content")


def read_offset_checkpoint(path: str | PathLike[str]) -> dict[tuple[str, int], int]:
    """Reads one of the `OFFSET_CHECKPOINTS`: an offset by topic and partition, in the file's order.

    Raises:
        Error: if it is not such a file; the message has the path and the line.
        OSError: if it cannot be read, is not a regular file, or is larger than 64 MiB.

    """
    return _read(path, parse_offset_checkpoint)


def read_meta_properties(path: str | PathLike[str]) -> dict[str, str]:
    """Reads a `meta.properties`: its values by name, such as `cluster.id`, `node.id` (`broker.id` in
    version 0) and `directory.id`.

    Raises:
        Error: if it is not such a file, or lacks what its version requires (`MetaProperties.Builder`).
        OSError: if it cannot be read, or is not a regular file.

    """
    return _read(path, parse_meta_properties)


def read_server_properties(path: str | PathLike[str]) -> dict[str, str]:
    """Reads a broker's `server.properties`: its values by name, passwords included.

    Raises:
        Error: if an escape in it is malformed.
        OSError: if it cannot be read, or is larger than 64 MiB.

    """
    return _read(path, lambda data: dict(_properties(data.decode("latin-1"))))


def read_clean_shutdown(path: str | PathLike[str]) -> int | None:
    """Reads a `.kafka_cleanshutdown`: the broker's epoch, or None if it was written before Kafka 3.7.

    That the file exists means that the broker stopped by itself.

    Raises:
        Error: if it is not such a file. A broker takes it for one without an epoch.
        OSError: if it cannot be read, or is not a regular file; FileNotFoundError if there is none.

    """
    return _read(path, parse_clean_shutdown)


def _read(path: str | PathLike[str], parse: Callable[[bytes], _Content]) -> _Content:
    try:
        return parse(_core.read_sidecar(path))
    except Error as error:
        raise type(error)(f"{os.fspath(path)}, {error}", error.kind) from None


def parse_offset_checkpoint(data: bytes) -> dict[tuple[str, int], int]:
    """Reads the bytes of one of the `OFFSET_CHECKPOINTS`: version 0, the number of lines that follow, and
    a line `topic partition offset` for each (`CheckpointFile`).

    Raises:
        Error: naming the first wrong line.

    """
    lines = _lines(_utf8(data))
    version = next(lines, None)
    if version is None:
        return {}
    if version[1] != "0":
        raise _invalid(f"line 1: expected version 0, found {_shown(version[1])}")
    # As in Kafka, a file that ends here has no entries.
    count = next(lines, (2, "0"))[1]
    number = _number(count, _INT)
    if number is None or number < 0:
        raise _invalid(f"line 2: expected the number of entries, found {_shown(count)}")
    offsets: dict[tuple[str, int], int] = {}
    found = 0
    for place, line in lines:
        found += 1
        entry = _checkpoint_entry(line)
        if entry is None:
            raise _invalid(f"line {place}: expected `topic partition offset`, found {_shown(line)}")
        topic, partition, offset = entry
        offsets[topic, partition] = offset
    if found != number:
        raise _invalid(f"line 2: {number} entries are announced, {found} lines follow")
    return offsets


def _checkpoint_entry(line: str) -> tuple[str, int, int] | None:
    fields = re.split(r"[ \t\f\v]+", line.rstrip(" \t\f\v"))
    if len(fields) != 3 or not fields[0]:
        return None
    partition, offset = _number(fields[1], _INT), _number(fields[2], _LONG)
    return None if partition is None or offset is None else (fields[0], partition, offset)


def format_offset_checkpoint(offsets: Mapping[tuple[str, int], int]) -> str:
    """The content of a checkpoint with these offsets, in their order."""
    lines = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items()]
    return f"0\n{len(lines)}\n{''.join(lines)}"


def parse_meta_properties(data: bytes) -> dict[str, str]:
    """Reads the bytes of a `meta.properties`: see `read_meta_properties`.

    Raises:
        Error: naming the line or the property.

    """
    _check_small(data)
    # `Properties.load` of an InputStream.
    properties = dict(_properties(data.decode("latin-1")))
    version = properties.get("version", "0")
    if version not in ("0", "1"):
        raise _invalid(f"version: expected 0 or 1, found {_shown(version)}")
    node = "broker.id" if version == "0" else "node.id"
    if version == "1":
        for name in (node, "cluster.id"):
            if name not in properties:
                raise _invalid(f"{name}: missing, which version 1 requires")
    if node in properties and _number(properties[node], _INT) is None:
        raise _invalid(f"{node}: expected a number, found {_shown(properties[node])}")
    return properties


_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _properties(text: str) -> Iterator[tuple[str, str]]:
    """The names and values of a Java properties file (`java.util.Properties.load`)."""
    lines = _lines(text)
    for place, natural in lines:
        line = natural.lstrip(" \t\f")
        if not line or line[0] in "#!":
            continue
        parts = [line]
        while _is_continued(parts[-1]):
            parts[-1] = parts[-1][:-1]
            parts.append(next(lines, (0, ""))[1].lstrip(" \t\f"))
        line = "".join(parts)
        name = re.match(r"(?:\\.|[^\\=: \t\f])*", line)
        end = name.end() if name else 0
        value = re.sub(r"^[ \t\f]*[=:]?[ \t\f]*", "", line[end:], count=1)
        yield _unescaped(line[:end], place), _unescaped(value, place)


def _is_continued(line: str) -> bool:
    """True if the line ends in a backslash that is not itself escaped."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str, place: int) -> str:
    def character(escape: re.Match[str]) -> str:
        code = escape[1]
        if not code.startswith("u"):
            return _ESCAPES.get(code, code)
        if len(code) != 5:
            raise _invalid(f"line {place}: expected four hex digits after \\u, found {_shown(text)}")
        return chr(int(code[1:], 16))

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", character, text)


def parse_clean_shutdown(data: bytes) -> int | None:
    """Reads the bytes of a `.kafka_cleanshutdown`: see `read_clean_shutdown`.

    Raises:
        Error: if it is neither empty nor a JSON object with a broker's epoch.

    """
    _check_small(data)
    if not data:
        return None
    text = _utf8(data)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    if type(epoch) is not int or epoch not in _LONG:
        raise _invalid(f'line 1: expected nothing or {{"version":0,"brokerEpoch":N}}, found {_shown(text)}')
    return epoch


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines as Java's `BufferedReader.readLine` finds them, with their numbers from 1."""
    lines = re.split("\r\n|\r|\n", text)
    if not lines[-1]:
        lines.pop()
    return iter(enumerate(lines, 1))


def _number(text: str, values: range) -> int | None:
    """The number as Java's `parseInt` and `parseLong` read it; None for anything else."""
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        return None
    number = int(text)
    return number if number in values else None


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        place = data.count(b"\n", 0, error.start) + 1
        raise _invalid(f"line {place}: byte {data[error.start]:#04x} is not UTF-8") from None


def _check_small(data: bytes) -> None:
    if len(data) > _SMALL_BYTES:
        message = f"line 1: {len(data)} bytes exceed the limit of {_SMALL_BYTES}"
        raise LimitExceededError(message, "limit_exceeded")


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _invalid(message: str) -> Error:
    return Error(message, "invalid_sidecar")
