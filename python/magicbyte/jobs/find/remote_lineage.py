"""Remote segments that a broker would not read, because they are not within the lineage of the log's leader
epochs. What is known of a segment is in `__remote_log_metadata`, in a manifest of Aiven's plugin, and in the
leader epochs beside the segment.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from magicbyte import _core, bounded_json
from magicbyte.errors import Error
from magicbyte.internal_topics.remote_segments import Epochs, RemoteSegmentsState, RemoteSpan
from magicbyte.jobs.find.leader_epochs import epochs_between, is_within_lineage, with_records
from magicbyte.listing import ID_LENGTH
from magicbyte.model import PartitionListing, Segment
from magicbyte.partition_files import LEADER_EPOCH_CHECKPOINT

__all__ = ["diverged_segments", "segment_id"]

_THREADS = 16
_MANIFEST = ".rsm-manifest"
_CHECKPOINT = ".leader_epoch_checkpoint"


def segment_id(segment: Segment) -> str:
    """The ID of a remote segment, from its name."""
    return segment["file"].partition(".")[0][-ID_LENGTH:]


def diverged_segments(
    remote: PartitionListing, local: PartitionListing | None, states: RemoteSegmentsState
) -> list[Segment]:
    """The remote segments of a partition that are known not to be within the lineage.

    The lineage is the `leader-epoch-checkpoint` of the broker's own directory, or else the one that the last
    leader copied with its last segment. A segment of which nothing is known is none of them. Without other
    information than the leader epochs beside a segment, its headers are read for its last offset.
    """
    segments = remote["segments"]
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="magicbyte-epochs") as pool:
        spans = [states.span(segment_id(segment)) for segment in segments]
        unknown = [at for at, span in enumerate(spans) if span is None]
        for at, span in zip(unknown, pool.map(_span, [segments[at] for at in unknown]), strict=True):
            spans[at] = span
    lineage = _lineage(local, segments, spans)
    if not lineage:
        return []
    known = with_records(lineage)
    return [
        one
        for one, span in zip(segments, spans, strict=True)
        if span is not None and span.epochs and not is_within_lineage(span, known)
    ]


def _lineage(
    local: PartitionListing | None, segments: Sequence[Segment], spans: Sequence[RemoteSpan | None]
) -> Epochs | None:
    if local is not None:
        return _checkpoint(os.path.join(local["path"], LEADER_EPOCH_CHECKPOINT))
    last = max(
        (
            (max(span.epochs), span.end_offset, one["path"])
            for one, span in zip(segments, spans, strict=True)
            if span is not None and span.epochs
        ),
        default=None,
    )
    return None if last is None else _checkpoint(os.path.splitext(last[2])[0] + _CHECKPOINT)


def _span(segment: Segment) -> RemoteSpan | None:
    stem = os.path.splitext(segment["path"])[0]
    try:
        manifest = bounded_json.loads(_core.read_sidecar(stem + _MANIFEST))["remoteLogSegmentMetadata"]
        epochs = {int(epoch): int(offset) for epoch, offset in manifest["segmentLeaderEpochs"].items()}
        return RemoteSpan(int(manifest["endOffset"]), dict(sorted(epochs.items())))
    except FileNotFoundError:
        return _span_of_checkpoint(segment, _checkpoint(stem + _CHECKPOINT))
    except (AttributeError, KeyError, OSError, TypeError, ValueError):
        return None


def _span_of_checkpoint(segment: Segment, checkpoint: Epochs | None) -> RemoteSpan | None:
    """From the leader epochs beside a segment: all from the log's start to the segment's end."""
    if not checkpoint:
        return None
    last_offset = json.loads(_core.survey_segment(json.dumps(segment)))["last_offset"]
    if last_offset is None:
        return None
    return RemoteSpan(last_offset, epochs_between(checkpoint, segment["base_offset"], last_offset))


def _checkpoint(path: str) -> Epochs | None:
    """The leader epochs in a file; None if it is missing or malformed, which the listing reports."""
    try:
        return dict(_core.leader_epoch_checkpoint(_core.read_sidecar(path).decode(errors="replace")))
    except (Error, OSError):
        return None
