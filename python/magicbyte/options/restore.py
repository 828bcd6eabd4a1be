"""Options of `restore`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from magicbyte import _core
from magicbyte.errors import Error
from magicbyte.options.declare import option
from magicbyte.options.shared import Certified, Connection, Decoding, Indexes
from magicbyte.options.values import TIME, Kind, Number, Repeated, items, text_value
from magicbyte.partition_files import format_partition_metadata

__all__ = ["GivenVoter", "RestoreOptions"]

_VOTER = re.compile(r"(\d{1,10})@(\[[^\]]+\]|[^:@\[\]]+):(\d{1,5})(?::([\w-]{22}))?")
_MAX_NODE = (1 << 31) - 1


class GivenVoter(NamedTuple):
    """A voter as a person names it."""

    node_id: int
    host: str
    port: int
    directory_id: str | None = None
    """None for that of the node's directory with the metadata."""

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{self.host}:{self.port}"


class _Several(Repeated):
    """Values with commas between them."""

    def parse_all(self, texts: Any) -> Any:
        """See `Repeated.parse_all`."""
        return tuple(self.parse(part.strip()) for text in texts for part in text.split(","))


class _Nodes(_Several):
    """Ids of nodes."""

    name = "nodes"
    texts = "1, or 1,2; may be repeated."
    _id = Number(0, _MAX_NODE)

    def parse(self, text: str) -> int:
        """See `Kind.parse`."""
        return self._id.parse(text)

    def normal(self, value: Any) -> Any:
        """See `Kind.normal`."""
        return tuple(sorted({*map(self._id.normal, items(value))}))


class _Voters(_Several):
    """Voters of a quorum."""

    name = "voters"
    texts = "1@kafka-1:9093, or several with commas; may be repeated."

    def parse(self, text: str) -> GivenVoter:
        """See `Kind.parse`."""
        found = _VOTER.fullmatch(text)
        if found is None or int(found[1]) > _MAX_NODE or not 0 < int(found[3]) < 1 << 16:
            raise ValueError(f"{text!r} is not a voter: expected ID@HOST:PORT or ID@HOST:PORT:DIRECTORY-ID")
        if found[4] is not None:
            _check_id(found[4])
        return GivenVoter(int(found[1]), found[2], int(found[3]), found[4])

    def show(self, value: Any) -> str:
        """See `Kind.show`."""
        directory = f":{value.directory_id}" if value.directory_id else ""
        return f"{value.node_id}@{value.address}{directory}"

    def normal(self, value: Any) -> Any:
        """See `Kind.normal`."""
        voters = tuple(
            one if isinstance(one, GivenVoter) else self.parse(text_value(one)) for one in items(value)
        )
        if len({one.node_id for one in voters}) < len(voters):
            raise ValueError("a node is named twice")
        return voters


class _Until(Kind):
    """A time, or a file with offsets."""

    name = "until"
    texts = f"{TIME.texts} Or a file."
    unit = "A time in milliseconds since 1970, or the path of a file."

    def parse(self, text: str) -> int | str:
        """See `Kind.parse`."""
        try:
            return TIME.parse(text)
        except ValueError:
            if not os.path.exists(text):
                raise ValueError(f"{text!r} is neither a time nor a file that exists") from None
        return text

    def normal(self, value: Any) -> int | str:
        """See `Kind.normal`."""
        return os.fspath(text_value(value)) if isinstance(value, str | os.PathLike) else TIME.normal(value)


def _check_id(text: str) -> None:
    try:
        _core.partition_metadata(format_partition_metadata(text).decode())
    except Error:
        raise ValueError(f"{text!r} is not a directory id: 22 characters of URL-safe base64") from None


@dataclass(frozen=True, kw_only=True)
class RestoreOptions(Indexes, Certified, Connection, Decoding):
    """Options of a restored cluster."""

    nodes: tuple[int, ...] = option(
        "The nodes to restore, by id. Partitions that were on none of them are placed there, too, with one"
        " replica.",
        default=(),
        default_text="every node of which there is a directory",
        kind=_Nodes("ID"),
    )
    voters: tuple[GivenVoter, ...] = option(
        "The controllers that vote from now on, with the addresses of their controller listeners.",
        default=(),
        default_text="those of the old quorum, if all of them are restored",
        kind=_Voters("ID@HOST:PORT"),
    )
    metadata_version: int | None = option(
        "The level of metadata.version, if the metadata that can be read has lost it. `kafka-features.sh"
        " version-mapping` has the levels of releases.",
        default=None,
        default_text="that of the metadata",
        kind=Number(1, (1 << 15) - 1, "LEVEL"),
    )
    until: int | str | None = option(
        "Restore the logs as they were then: each ends before the first batch with a later timestamp, or at"
        " the offset that a file has for it, and before the first transaction that was open there. The file"
        " is the JSON of `magicbyte offsets`, one as for kafka-delete-records, or an object such as"
        ' {"orders-0": 150}.',
        default=None,
        default_text="as they are",
        kind=_Until("TIME|FILE"),
    )
    target: str | None = option(
        "Restore into another running cluster: the addresses of its brokers. Its topics exist and are empty.",
        default=None,
        kind=Kind("HOST:PORT"),
    )
    in_place: bool = option(
        "Restore the log directories themselves: what changes is moved aside first, and no log is written."
        " A job that was killed can be finished or undone.",
        default=False,
    )
    undo: bool = option(
        "Take back what was restored in place: every file is as it was. Only until a node has started.",
        default=False,
    )
