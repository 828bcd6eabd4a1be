"""Full copies of logs, beside those whose places they take when they are whole."""

from __future__ import annotations

import os
import shutil

from magicbyte.jobs.backing_up.kept_log import KeptLog, deleted_name
from magicbyte.jobs.publish.workspace import sync, sync_tree

__all__ = ["has_more_damage", "only_in_former", "put_in_place"]


def has_more_damage(full: KeptLog, former: KeptLog) -> bool:
    """True for damage that the former log does not have: the leader's disk may have rotted since."""
    had = [(one["first_offset"], one["last_offset"]) for one in former.damaged]
    return any((one["first_offset"], one["last_offset"]) not in had for one in full.damaged)


def only_in_former(full: KeptLog, former: KeptLog) -> tuple[list[int], int]:
    """The segments of the former log with what the cluster has deleted since, and the start of the full copy.

    The batches that a compaction has removed come after the start of the cluster's log, and go.
    """
    own = [segment for segment, size in full.segments().items() if size]
    start = min([full.log_start_offset, *own])
    return [segment for segment, size in former.segments().items() if size and segment < start], start


def put_in_place(full: KeptLog, former: KeptLog) -> None:
    """Puts a full copy in the place of the former log, which is removed."""
    place, out = former.directory, os.path.dirname(former.directory)
    full.write_epochs()
    sync_tree(full.directory)
    deleted = os.path.join(out, deleted_name(full.name, full.topic_id))
    os.rename(place, deleted)
    os.rename(full.directory, place)
    sync(out)
    shutil.rmtree(deleted)
    full.directory = place
