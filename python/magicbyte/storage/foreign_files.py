"""Descriptions of files that are not Kafka logs: archives that are not read, and files of other products."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from itertools import islice

from magicbyte.errors import RefusedError
from magicbyte.storage.location import locate

__all__ = ["foreign_below", "no_segment"]

_LOOKED_AT = 10_000
"""The maximum number of names to examine in a directory."""
_UNREAD = "which is not read: unpack it, or pack it as .tar, .tar.gz or .tar.zst"
_DECOMPRESS = "decompress it, or give it the ending .log.gz or .log.zst (archives: .tar.gz or .tar.zst)"
_STARTS = (
    (b"PK\x03\x04", f"a zip archive, {_UNREAD}"),
    (b"PK\x05\x06", f"a zip archive, {_UNREAD}"),
    (b"\xfd7zXZ\0", f"an archive or a file compressed with xz, {_UNREAD}"),
    (b"BZh", f"an archive or a file compressed with bzip2, {_UNREAD}"),
    (b"7z\xbc\xaf\x27\x1c", f"a 7z archive, {_UNREAD}"),
    (b"Rar!\x1a\x07", f"a rar archive, {_UNREAD}"),
    (b"\x89LZO\0\r\n\x1a\n", f"an archive or a file compressed with lzop, {_UNREAD}"),
    (b"LZIP", f"an archive or a file compressed with lzip, {_UNREAD}"),
    (b"\x5d\0\0", f"an archive or a file compressed with lzma, {_UNREAD}"),
    (b"\x1f\x9d", f"an archive or a file compressed with compress, {_UNREAD}"),
    (b"\x04\x22\x4d\x18", f"an archive or a file compressed with lz4, {_UNREAD}"),
    (b"\xff\x06\0\0sNaPpY", f"an archive or a file compressed with snappy, {_UNREAD}"),
    (b"070701", f"a cpio archive, {_UNREAD}"),
    (b"\x1f\x8b", f"an archive or a file compressed with gzip: {_DECOMPRESS}"),
    (b"\x28\xb5\x2f\xfd", f"an archive or a file compressed with zstd: {_DECOMPRESS}"),
    (b"PAR1", "a Parquet file"),
    (b"Obj\x01", "an Avro file"),
    (b"\xd4\xc3\xb2\xa1", "a capture of packets: `magicbyte wire` reads it"),
    (b"\x4d\x3c\xb2\xa1", "a capture of packets: `magicbyte wire` reads it"),
    (b"\xa1\xb2\xc3\xd4", "a capture of packets: `magicbyte wire` reads it"),
    (b"\x0a\x0d\x0d\x0a", "a capture of packets: `magicbyte wire` reads it"),
)
"""Descriptions of formats, by the first bytes of a file."""
_TAR = (257, b"ustar")
_NAMES = (
    (re.compile(r"\d+-\d+-v\d+\.log"), "a Redpanda segment, which has batches of another format"),
    (
        re.compile(r"segment_partition_\d+_from_offset_\d+_(records|index)"),
        "a file of kafka-backup, which has a format of its own: restore it first",
    ),
    (
        re.compile(r"segment-\d+\.bin(\.\w+)?"),
        "a file of kafka-backup, which has a format of its own: restore it first",
    ),
)


def no_segment(path: str) -> RefusedError:
    """The refusal of a file that is not a segment, with its format if that is known."""
    what = _foreign_format(path)
    if what is not None:
        return RefusedError(f"{path} is {what}")
    return RefusedError(
        f"{path} does not have the name of a segment, such as {0:020d}.log, nor begins with a batch"
    )


def _foreign_format(path: str) -> str | None:
    """A file's format by its name or its first bytes, and what to do with the file; None if it is unknown."""
    by_name = _by_name(os.path.basename(path))
    if by_name is not None:
        return by_name
    try:
        start = _start(path)
    except OSError:
        return None
    if start[_TAR[0] :].startswith(_TAR[1]):
        return "a tar archive: give it the ending .tar"
    return next((what for magic, what in _STARTS if start.startswith(magic)), None)


def foreign_below(sources: Iterable[str]) -> str | None:
    """The first file in these directories that another product wrote, with its description."""
    for source in sources:
        if not locate(source).is_live:
            continue  # each look may be a request
        files = (os.path.join(top, name) for top, _, names in os.walk(source) for name in names)
        for path in islice(files, _LOOKED_AT):
            if (what := _by_name(os.path.basename(path))) is not None:
                return f"{path} is {what}"
    return None


def _by_name(name: str) -> str | None:
    return next((what for pattern, what in _NAMES if pattern.fullmatch(name)), None)


def _start(path: str) -> bytes:
    length = _TAR[0] + len(_TAR[1])
    with locate(path).open(length) as file:
        return file.read(length)
