"""`quorum-state`, the file in which a node keeps what it knows of the quorum (`QuorumStateData`)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from magicbyte import _core
from magicbyte.errors import Error

__all__ = ["QuorumFile", "read_quorum_file"]

_NAME = "quorum-state"


@dataclass(frozen=True)
class QuorumFile:
    """The content of a `quorum-state`."""

    leader: int | None
    """The leader; None if the node knew of none."""
    leader_epoch: int
    voters: list[int]
    """The voters of a static quorum. Since KIP-853 they are in the log."""


def read_quorum_file(directory: str) -> QuorumFile | None:
    """Reads the file in a copy of `__cluster_metadata-0`; None if there is none.

    Raises:
        Error: it is not such a file.
        OSError: it cannot be read, or is larger than 64 MiB.

    """
    path = os.path.join(directory, _NAME)
    try:
        data = json.loads(_core.read_sidecar(path))
        leader = _number(data["leaderId"])
        voters = dict.fromkeys(_number(one["voterId"]) for one in data.get("currentVoters") or ())
        return QuorumFile(None if leader < 0 else leader, _number(data["leaderEpoch"]), [*voters])
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Error(f"{path} is not a quorum-state: {error!r}", "invalid_sidecar") from None


def _number(value: object) -> int:
    if type(value) is not int or not -1 <= value < 1 << 31:
        raise ValueError(f"{value!r} is not an id or an epoch")
    return value
