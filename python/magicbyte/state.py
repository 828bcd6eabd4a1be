"""The state of a log that a broker or a consumer keeps without reading records.

>>> import magicbyte
>>> from magicbyte.state import ProducerStateManager
>>> builder = magicbyte.RecordsBuilder(producer_id=7, producer_epoch=0, base_sequence=0)
>>> builder.append(offset=0, timestamp=0, key=None, value=b"v")
>>> (batch,) = magicbyte.read_batches(builder.build())
>>> producers = ProducerStateManager()
>>> producers.check(batch).verdict
'append'
>>> producers.apply(batch)
>>> producers.check(batch).duplicate_of.first_offset
0
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from os import PathLike

from magicbyte import _core
from magicbyte._core import (
    AbortedTransaction,
    BatchMetadata,
    Check,
    CompletedTransaction,
    LeaderEpochs,
    ProducerStateEntry,
    ProducerStateManager,
    Truncation,
    VerificationGuard,
)
from magicbyte.listing import checkpointed_epochs, unread_segments
from magicbyte.model import PartitionListing, PartitionPlan, Survey

__all__ = [
    "AbortedTransaction",
    "BatchMetadata",
    "Check",
    "CompletedTransaction",
    "LeaderEpochs",
    "ProducerStateEntry",
    "ProducerStateManager",
    "Truncation",
    "VerificationGuard",
    "leader_epochs_of",
    "read_committed",
    "truncation",
]

_Batch = _core.RecordBatch | _core.LegacyBatch


def leader_epochs_of(directory: str | PathLike[str]) -> tuple[LeaderEpochs, int]:
    """The leader epochs of a partition and its end offset (exclusive), from its batches and checkpoint.

    Reads the batch headers of all segments. The file `leader-epoch-checkpoint` also has epochs without any
    remaining batch; an unreadable one is ignored, as by a broker.

    Raises:
        OSError: if the directory or one of its segments cannot be read.

    """
    text = _core.list_partition(directory)
    listing: PartitionListing = json.loads(text)
    surveys = [_core.survey_segment(json.dumps(segment)) for segment in listing["segments"]]
    for problem in unread_segments(listing):
        raise OSError(f"{directory}: {problem['segment']} {problem['message']}")
    for survey_text in surveys:
        survey: Survey = json.loads(survey_text)
        if survey["unreadable"] is not None:
            raise OSError(f"{directory}: {survey['segment']['file']} {survey['unreadable']}")
    plan: PartitionPlan = json.loads(_core.plan_partition(text, surveys))
    epochs = LeaderEpochs(checkpointed_epochs(os.fspath(directory)))
    end = plan["next_offset"] or 0
    for entry in plan["leader_epochs"]:
        latest = epochs.entries[-1][0] if epochs.entries else -1
        if entry["epoch"] > latest:
            epochs.assign(entry["epoch"], entry["start_offset"])
    epochs.truncate_from_end(end)
    return epochs, end


def truncation(follower: str | PathLike[str], leader: str | PathLike[str]) -> Truncation:
    """The point where two copies of a partition diverge, and where a follower therefore truncates its copy.

    Args:
        follower: the directory of the follower's copy.
        leader: the directory of the leader's copy.

    """
    epochs, end = leader_epochs_of(follower)
    leaders, leader_end = leader_epochs_of(leader)
    return epochs.truncation(end, leaders, leader_end)


def read_committed(
    batches: Iterable[_Batch], aborted_transactions: Iterable[AbortedTransaction | tuple[int, int]]
) -> Iterator[_Batch]:
    """The batches of a fetch that a `read_committed` consumer delivers (Kafka's `CompletedFetch`).

    Control batches and batches of aborted transactions are left out. A broker answers such a fetch with
    batches up to the last stable offset, and a list of the aborted transactions among them.

    Args:
        batches: in the order of the fetch, for example `magicbyte.read_batches(...)`.
        aborted_transactions: in any order; (producer id, first offset) is enough of each.

    Raises:
        Error: for a control batch whose first record cannot be read.

    """
    pairs = [(producer_id, first_offset) for producer_id, first_offset, *_ in aborted_transactions]
    committed = _core.AbortedFilter(pairs)
    return (batch for batch in batches if committed.admit(batch) == "deliver")
