"""Captures of the protocol: used by `magicbyte.wire`."""

from os import PathLike
from typing import final

from typing_extensions import Buffer

_Exchange = tuple[
    int,
    str | None,
    str | None,
    tuple[int, int, int] | None,
    bool,
    int | None,
    int | None,
    bytes | None,
    bytes | None,
]
_RecordSet = tuple[str | None, str | None, int, bytes]

@final
class WireReader:
    """Reads capture files, one after the other, as one capture."""

    def __new__(cls, paths: list[str | PathLike[str]], ports: list[int]) -> WireReader: ...
    @staticmethod
    def of_streams(requests: str | PathLike[str], responses: str | PathLike[str]) -> WireReader:
        """Reads the bytes of one connection, from a file for each direction."""

    def next_block(self) -> list[_Exchange]:
        """The next exchanges: at most some MiB, or a single exchange; none at the end."""

    def summary(self) -> tuple[int, int, int, int, int, int, list[str], int]:
        """The contents besides exchanges so far, in the order of `magicbyte.wire.WireSummary`."""

def request_record_sets(frame: Buffer) -> list[_RecordSet]:
    """Topic, topic id, partition and batches of each record set of a request."""

def response_record_sets(frame: Buffer, api_key: int, api_version: int) -> list[_RecordSet]:
    """The same of a response to a request of this API and version."""
