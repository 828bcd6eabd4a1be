"""Records that metadata has lost, or had not got yet, and that a cluster needs to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.internal_topics.metadata.cluster import ClusterState
from magicbyte.internal_topics.names import is_topic

__all__ = [
    "METADATA_VERSION",
    "SKIPPED_IDS",
    "check_metadata_version",
    "leave_out_impossible",
    "skip_producer_ids",
]

METADATA_VERSION = "metadata.version"
SKIPPED_IDS = 1_000_000
"""A thousand blocks of producer ids, of which there are 2^63."""
_LAST_ID = (1 << 63) - 1
_REMOVE_TOPIC_RECORD = 9
_FEATURE_LEVEL_RECORD, _PRODUCER_IDS_RECORD, _ABORT_TRANSACTION_RECORD = 12, 15, 25


def check_metadata_version(state: ClusterState, given: int | None) -> None:
    """Gives the state the metadata version of the caller, if its own record is lost.

    Raises:
        RefusedError: it has none and none is given, or it has another one.

    """
    known = state.features.get(METADATA_VERSION)
    if given is None:
        if known is None:
            raise RefusedError(
                f"the metadata that can be read has no {METADATA_VERSION}, without which no controller"
                " starts: give that of the old cluster (--metadata-version), such as 25 for 4.0-IV3"
            )
    elif known not in (None, given):
        raise RefusedError(
            f"the metadata has {METADATA_VERSION} {known}, and --metadata-version says {given}: leave it"
            " out, and change it with kafka-features.sh when the cluster runs"
        )
    else:
        _add(state, _FEATURE_LEVEL_RECORD, {"name": METADATA_VERSION, "featureLevel": given})


def skip_producer_ids(state: ClusterState, highest: int) -> None:
    """Skips ids that brokers may have got after the metadata ended, and those up to `highest`, which the logs
    have: two producers of one id disturb each other.
    """
    following = min(max(state.next_producer_id or 0, highest + 1) + SKIPPED_IDS, _LAST_ID)
    _add(state, _PRODUCER_IDS_RECORD, {"brokerId": -1, "brokerEpoch": -1, "nextProducerId": following})


def leave_out_impossible(state: ClusterState) -> Iterator[str]:
    """Removes topics and partitions that no controller can have made, and yields their names and why: brokers
    would make directories of these names.
    """
    for topic in list(state.topics.values()):
        if not is_topic(topic.name):
            _add(state, _REMOVE_TOPIC_RECORD, {"topicId": topic.topic_id})
            yield f"the metadata has a topic {topic.name!r}, which is no name of a topic: it is not restored"
        for number in [one for one in topic.partitions if one < 0]:
            del topic.partitions[number]
            yield f"the metadata has a partition {number} of {topic.name!r}: it is not restored"


def _add(state: ClusterState, kind: int, data: dict[str, Any]) -> None:
    # A controller that starts aborts the transaction that the log ends in.
    state.replay(_core.encode_metadata_record(_ABORT_TRANSACTION_RECORD, 0, {}))
    state.replay(_core.encode_metadata_record(kind, 0, data))
